"""Follow the values of an input through a graph, to the constants that they meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from onnx import ModelProto, NodeProto, TensorProto

from bundler.onnxkit.structure import iterate_graphs, iterate_nodes, read_constant

_PASSING: Final = frozenset(
    {"Cast", "Reshape", "Squeeze", "Unsqueeze", "Identity", "Flatten", "Transpose", "Slice", "Expand", "Tile", "Concat"}
)
"""Operators whose output holds the values of their first inputs."""
_TABLE_PASSING: Final = frozenset({"Cast", "Identity", "DequantizeLinear", "Transpose"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFlow:
    """Readers and producers of every value by its name, in all graphs of a model, and its initializers."""

    readers: Mapping[str, list[tuple[NodeProto, int]]]
    producers: Mapping[str, NodeProto]
    tensors: Mapping[str, TensorProto]

    def uses(self, start: str) -> Iterator[tuple[NodeProto, int]]:
        """Each node that reads the values of `start`, with the input's index; also after nodes that pass them on."""
        pending, seen = [start], {start}
        while pending:
            for node, position in self.readers.get(pending.pop(), ()):
                yield node, position
                if node.op_type in _PASSING and (position == 0 or node.op_type == "Concat"):
                    fresh = [name for name in node.output if name not in seen]
                    seen.update(fresh)
                    pending.extend(fresh)

    def tensor(self, name: str) -> TensorProto | None:
        """The constant behind a value, through casts and dequantisation."""
        seen = set()
        while name not in self.tensors:
            node = self.producers.get(name)
            if node is None or name in seen:
                return None
            if node.op_type == "Constant":
                return next((item.t for item in node.attribute if item.name == "value"), None)
            if node.op_type not in _TABLE_PASSING or not node.input:
                return None
            seen.add(name)
            name = node.input[0]
        return self.tensors[name]

    def varies(self, name: str) -> bool:
        """Whether a value depends on the inputs' numbers or sizes, not only on constants and ranks."""
        return bool(self.sources(name))

    def sources(self, name: str) -> tuple[str, ...]:
        """The inputs, of the model or of a loop's body, whose numbers or sizes a value depends on, sorted."""
        pending, seen, found = [name], {name}, set()
        while pending:
            current = pending.pop()
            node = self.producers.get(current)
            if current in self.tensors or (node is not None and self._is_rank(node)):
                continue
            if node is None:
                found.add(current)
                continue
            fresh = {item for item in node.input if item} - seen
            seen |= fresh
            pending += fresh
        return tuple(sorted(found))

    def _is_rank(self, node: NodeProto) -> bool:
        source = self.producers.get(node.input[0]) if node.op_type == "Size" and node.input else None
        return source is not None and source.op_type == "Shape"

    def number(self, name: str) -> float | None:
        """The number behind a value that is a constant of one element."""
        tensor = self.tensor(name)
        values = None if tensor is None else read_constant(tensor)
        if values is None or values.size != 1 or values.dtype.kind not in "biuf":
            return None
        return float(values.reshape(-1)[0])


def read_flow(model: ModelProto) -> ValueFlow:
    """The flow of values in a model, read without its weights."""
    readers: dict[str, list[tuple[NodeProto, int]]] = {}
    producers: dict[str, NodeProto] = {}
    for node in iterate_nodes(model):
        producers.update(dict.fromkeys(node.output, node))
        for position, name in enumerate(node.input):
            readers.setdefault(name, []).append((node, position))
    tensors = {tensor.name: tensor for graph in iterate_graphs(model) for tensor in graph.initializer}
    return ValueFlow(readers=readers, producers=producers, tensors=tensors)
