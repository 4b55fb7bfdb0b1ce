"""Find the constants that a model compares its integers with: a sample rate, a number of steps, a padding token's id.
Such values select between two branches of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from onnx import ModelProto, NodeProto, TensorProto

from bundler.onnxkit.value_flow import ValueFlow, read_flow

_ORDERING: Final = frozenset({"Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
_MAX_VALUES: Final = 8
_INT64: Final = 1 << 63


def compared_constants(model: ModelProto, names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """For each input that is compared: values on both sides of each constant, those of the first constant first.

    For equality the other value is half of the constant: for sample rates that is a valid one, too.
    """
    flow = read_flow(model)
    found = {name: tuple(dict.fromkeys(_values(name, flow)))[:_MAX_VALUES] for name in names}
    return {name: values for name, values in found.items() if values}


def find_masks(model: ModelProto, names: tuple[str, ...]) -> frozenset[str]:
    """The inputs that the graph takes for masks, whatever they are called: it computes 1 - x, or makes truths of them.
    An exporter without names calls a mask `onnx::Unsqueeze_1`.
    """
    flow = read_flow(model)
    return frozenset(name for name in names if any(_is_of_mask(*use, flow) for use in flow.uses(name)))


def _is_of_mask(node: NodeProto, position: int, flow: ValueFlow) -> bool:
    if node.op_type == "Cast":
        return any(item.name == "to" and item.i == TensorProto.BOOL for item in node.attribute)
    return node.op_type == "Sub" and position == 1 and flow.number(node.input[0]) == 1


def _values(start: str, flow: ValueFlow) -> Iterator[int]:
    """All constants for equality come before the values for inequality, so that none is cut off."""
    others: list[int] = []
    for node, position in flow.uses(start):
        number = _other_side(node, position, flow)
        if number is None:
            continue
        if node.op_type == "Equal":
            yield number
            others.append(number // 2 if number > 1 else number + 1)
        else:
            yield from (max(number + step, min(number, 0)) for step in (0, 1, -1))
    yield from others


def _other_side(node: NodeProto, position: int, flow: ValueFlow) -> int | None:
    if len(node.input) != 2 or not (node.op_type == "Equal" or node.op_type in _ORDERING):  # noqa: PLR2004 - a pair
        return None
    number = flow.number(node.input[1 - position])
    if number is None or not math.isfinite(number) or abs(number) >= _INT64:
        return None
    return int(number)
