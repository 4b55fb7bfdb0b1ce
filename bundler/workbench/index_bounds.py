"""How large may the integers of an input be? Those that select rows of a table must stay inside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from bundler.workbench.structure import iterate_graphs, iterate_nodes

_PASSING: Final = frozenset(
    {"Cast", "Reshape", "Squeeze", "Unsqueeze", "Identity", "Flatten", "Transpose", "Slice", "Expand", "Tile", "Concat"}
)
"""Operators whose output holds the values of their first inputs."""
_TABLE_PASSING: Final = frozenset({"Cast", "Identity", "DequantizeLinear", "Transpose"})
_EMBEDDING_TABLES: Final = {0: 2, 1: 4}
"""com.microsoft.EmbedLayerNormalization: input with the ids -> input with the table."""


def index_bounds(model: ModelProto, names: tuple[str, ...]) -> dict[str, int]:
    """For each input that selects from a table: how many entries the smallest of those tables has."""
    readers: dict[str, list[tuple[NodeProto, int]]] = {}
    producers: dict[str, NodeProto] = {}
    for node in iterate_nodes(model):
        producers.update(dict.fromkeys(node.output, node))
        for position, name in enumerate(node.input):
            readers.setdefault(name, []).append((node, position))
    tensors = {tensor.name: tensor for graph in iterate_graphs(model) for tensor in graph.initializer}
    bounds = {}
    for name in names:
        sizes = list(_sizes(name, readers, producers, tensors))
        if sizes:
            bounds[name] = min(sizes)
    return bounds


def _sizes(
    start: str,
    readers: Mapping[str, list[tuple[NodeProto, int]]],
    producers: Mapping[str, NodeProto],
    tensors: Mapping[str, TensorProto],
) -> Iterator[int]:
    pending, seen = [start], {start}
    while pending:
        for node, position in readers.get(pending.pop(), ()):
            size = _selected_size(node, position, producers, tensors)
            if size is not None:
                yield size
            elif node.op_type in _PASSING and (position == 0 or node.op_type == "Concat"):
                fresh = [name for name in node.output if name not in seen]
                seen.update(fresh)
                pending.extend(fresh)


def _selected_size(
    node: NodeProto, position: int, producers: Mapping[str, NodeProto], tensors: Mapping[str, TensorProto]
) -> int | None:
    if node.op_type == "Gather" and position == 1:
        return _table_size(node.input[0], _axis(node), producers, tensors)
    if node.op_type == "EmbedLayerNormalization" and position in _EMBEDDING_TABLES:
        table = _EMBEDDING_TABLES[position]
        return _table_size(node.input[table], 0, producers, tensors) if len(node.input) > table else None
    if node.op_type == "OneHot" and position == 0:
        return _constant(node.input[1], producers, tensors)
    return None


def _axis(node: NodeProto) -> int:
    return next((int(item.i) for item in node.attribute if item.name == "axis"), 0)


def _table_size(
    name: str, axis: int, producers: Mapping[str, NodeProto], tensors: Mapping[str, TensorProto]
) -> int | None:
    tensor = _tensor(name, producers, tensors)
    if tensor is None or not -len(tensor.dims) <= axis < len(tensor.dims):
        return None
    return int(tensor.dims[axis])


def _tensor(name: str, producers: Mapping[str, NodeProto], tensors: Mapping[str, TensorProto]) -> TensorProto | None:
    """The constant behind a value, through casts and dequantisation."""
    while name not in tensors:
        node = producers.get(name)
        if node is None:
            return None
        if node.op_type == "Constant":
            return next((item.t for item in node.attribute if item.name == "value"), None)
        if node.op_type not in _TABLE_PASSING:
            return None
        name = node.input[0]
    return tensors[name]


def _constant(name: str, producers: Mapping[str, NodeProto], tensors: Mapping[str, TensorProto]) -> int | None:
    tensor = _tensor(name, producers, tensors)
    if tensor is None or tensor.data_location == TensorProto.EXTERNAL:
        return None
    values = numpy_helper.to_array(tensor).reshape(-1)
    return int(values[0]) if values.size == 1 else None
