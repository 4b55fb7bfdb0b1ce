"""Find upper bounds for the integers of an input: indices into a table must stay inside it."""

from __future__ import annotations

from typing import Final

from onnx import ModelProto, NodeProto

from bundler.onnxkit.structure import integer_attribute
from bundler.onnxkit.value_flow import ValueFlow, read_flow

_EMBEDDING_TABLES: Final = {0: 2, 1: 4}
"""com.microsoft.EmbedLayerNormalization: input with the ids -> input with the table."""
_SELECTING: Final = {"Gather": "axis", "GatherElements": "axis", "GatherBlockQuantized": "gather_axis"}
"""Operators whose second input selects along an axis of their first, and their attribute for the axis."""


def index_bounds(model: ModelProto, names: tuple[str, ...]) -> dict[str, int]:
    """For each input that selects from a table: the number of entries in the smallest of those tables."""
    flow = read_flow(model)
    found = {name: [_selected_size(node, position, flow) for node, position in flow.uses(name)] for name in names}
    sizes = {name: [size for size in found[name] if size is not None] for name in names}
    return {name: min(sizes[name]) for name in names if sizes[name]}


def _selected_size(node: NodeProto, position: int, flow: ValueFlow) -> int | None:
    if node.op_type in _SELECTING and position == 1:
        return _table_size(node.input[0], integer_attribute(node, _SELECTING[node.op_type]), flow)
    if node.op_type == "ArrayFeatureExtractor" and position == 1:
        return _table_size(node.input[0], -1, flow)
    if node.op_type == "EmbedLayerNormalization" and position in _EMBEDDING_TABLES:
        table = _EMBEDDING_TABLES[position]
        return _table_size(node.input[table], 0, flow) if len(node.input) > table else None
    if node.op_type == "OneHot" and position == 0 and len(node.input) > 1:
        depth = flow.number(node.input[1])
        return None if depth is None else int(depth)
    return None


def _table_size(name: str, axis: int, flow: ValueFlow) -> int | None:
    tensor = flow.tensor(name)
    if tensor is None or not -len(tensor.dims) <= axis < len(tensor.dims):
        return None
    return int(tensor.dims[axis])
