"""Find upper bounds for the integers of an input: indices into a table must stay inside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from onnx import ModelProto, NodeProto

from bundler.onnxkit.value_flow import ValueFlow, read_flow

_EMBEDDING_TABLES: Final = {0: 2, 1: 4}
"""com.microsoft.EmbedLayerNormalization: input with the ids -> input with the table."""
_SELECTING: Final = {"Gather": "axis", "GatherElements": "axis", "GatherBlockQuantized": "gather_axis"}
"""Operators whose second input selects along an axis of their first, and their attribute for the axis."""


def index_bounds(model: ModelProto, names: tuple[str, ...]) -> dict[str, int]:
    """For each input that selects from a table: the number of entries in the smallest of those tables."""
    flow = read_flow(model)
    bounds = {}
    for name in names:
        sizes = list(_sizes(name, flow))
        if sizes:
            bounds[name] = min(sizes)
    return bounds


def _sizes(start: str, flow: ValueFlow) -> Iterator[int]:
    for node, position in flow.uses(start):
        size = _selected_size(node, position, flow)
        if size is not None:
            yield size


def _selected_size(node: NodeProto, position: int, flow: ValueFlow) -> int | None:
    if node.op_type in _SELECTING and position == 1:
        return _table_size(node.input[0], _axis(node, _SELECTING[node.op_type]), flow)
    if node.op_type == "ArrayFeatureExtractor" and position == 1:
        return _table_size(node.input[0], -1, flow)
    if node.op_type == "EmbedLayerNormalization" and position in _EMBEDDING_TABLES:
        table = _EMBEDDING_TABLES[position]
        return _table_size(node.input[table], 0, flow) if len(node.input) > table else None
    if node.op_type == "OneHot" and position == 0 and len(node.input) > 1:
        depth = flow.number(node.input[1])
        return None if depth is None else int(depth)
    return None


def _axis(node: NodeProto, name: str) -> int:
    return next((int(item.i) for item in node.attribute if item.name == name), 0)


def _table_size(name: str, axis: int, flow: ValueFlow) -> int | None:
    tensor = flow.tensor(name)
    if tensor is None or not -len(tensor.dims) <= axis < len(tensor.dims):
        return None
    return int(tensor.dims[axis])
