"""Derive the number of a transformer's attention heads from the shapes that split them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from onnx import ModelProto, NodeProto, TensorProto

from bundler.onnxkit.structure import integer_attribute, read_constant, tensor_bytes

_SPLIT_RANK = 4
"""Dimensions of [batch, tokens, heads, size of a head]."""
_MAX_SHAPE_BYTES = 1024
"""Size in bytes up to which an integer tensor may be a shape; `read_structure` keeps the payloads of those."""
_MAX_STEPS = 6
"""Maximum number of nodes between a projection and the Reshape that splits its heads."""
_INTEGERS = (TensorProto.INT64, TensorProto.INT32)


@dataclass(frozen=True, slots=True)
class _Graph:
    """Lookups into one graph: the producers and readers of values, and weights by name."""

    makers: dict[str, NodeProto]
    readers: dict[str, list[NodeProto]]
    weights: dict[str, TensorProto]

    def shape_tail(self, name: str) -> tuple[int, int] | None:
        """The last two sizes of a shape of `_SPLIT_RANK` entries; -1 where unknown. None for other shapes."""
        values = self._integers(name)
        maker = self.makers.get(name)
        if values is None and maker is not None and maker.op_type == "Concat":
            parts = [self._integers(part) for part in maker.input]
            values = [entry for part in parts for entry in (part or [-1])]
        if values is None or len(values) != _SPLIT_RANK:
            return None
        return values[-2] or -1, values[-1] or -1

    def _integers(self, name: str) -> list[int] | None:
        tensor = self.weights.get(name)
        maker = self.makers.get(name)
        if tensor is None and maker is not None and maker.op_type == "Constant":
            tensor = next((item.t for item in maker.attribute if item.name == "value"), None)
        if tensor is None or tensor.data_type not in _INTEGERS or tensor_bytes(tensor) > _MAX_SHAPE_BYTES:
            return None
        values = read_constant(tensor)
        return None if values is None else [int(entry) for entry in values.ravel()]

    def width(self, name: str) -> int:
        """The width of the projection that computes `name`; 0 where none is found."""
        for _ in range(_MAX_STEPS):
            maker = self.makers.get(name)
            if maker is None:
                return 0
            if maker.op_type in ("MatMul", "Gemm"):
                return self._columns(maker)
            # A bias may be either input of its addition.
            name = next((item for item in maker.input if item in self.makers), "")
        return 0

    def _columns(self, node: NodeProto) -> int:
        weight = self.weights.get(node.input[1])
        turned = integer_attribute(node, "transB")
        return int(weight.dims[0 if turned else -1]) if weight is not None and len(weight.dims) == 2 else 0  # noqa: PLR2004 (a matrix)


def find_heads(model: ModelProto) -> tuple[int, int]:
    """Number of heads and hidden size, (0, 0) if unknown; with grouped attention, those of the query."""
    graph = _read(model)
    votes: Counter[tuple[int, int]] = Counter()
    for node in model.graph.node:
        readers = graph.readers.get(node.output[0], ()) if node.op_type == "Reshape" else ()
        found = _sizes(graph, node) if any(reader.op_type == "Transpose" for reader in readers) else None
        if found:
            votes[found] += 1
    return max(votes, key=lambda item: (item[1], votes[item], item[0]), default=(0, 0))


def _read(model: ModelProto) -> _Graph:
    readers: dict[str, list[NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    makers = {name: node for node in model.graph.node for name in node.output}
    return _Graph(makers, readers, {tensor.name: tensor for tensor in model.graph.initializer})


def _sizes(graph: _Graph, node: NodeProto) -> tuple[int, int] | None:
    tail = graph.shape_tail(node.input[1]) if len(node.input) > 1 else None
    if tail is None:
        return None
    heads, size = tail
    if heads > 0 and size > 0:
        return heads, heads * size
    hidden = graph.width(node.input[0])
    if heads < 0 < size:
        heads = hidden // size
    return (heads, hidden) if heads > 0 and hidden > 0 and hidden % heads == 0 else None
