"""Choose the operators and nodes to quantise, checked against the model, so that a misspelt name is an error."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Final

import onnx
from onnx import ModelProto
from onnxruntime.quantization.registry import IntegerOpsRegistry, QDQRegistry, QLinearOpsRegistry

from bundler.model.errors import StageError
from bundler.onnxkit.structure import iterate_nodes

STATIC_OPERATORS: Final = tuple(sorted({*QLinearOpsRegistry, *QDQRegistry}))
"""Operators that the reference quantises statically by default."""
DYNAMIC_OPERATORS: Final = tuple(IntegerOpsRegistry)
_KNOWN: Final = frozenset({*STATIC_OPERATORS, *DYNAMIC_OPERATORS})

_QUANTIZED: Final = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})
_QUANTIZED_STEMS: Final = (
    "QLinear", "QGemm", "QAttention", "QMoE", "DynamicQuantize", "NhwcQLinear", "QEmbed", "QOrdered",
)  # fmt: skip
_INTEGER_STEMS: Final = ("ConvInteger", "MatMulInteger")
_WEIGHTS_ONLY: Final = {"MatMulNBits": "MatMul", "MatMulBnb4": "MatMul", "GatherBlockQuantized": "Gather"}
_MAX_NAMED: Final = 5


def check_not_quantized(model: ModelProto, operators: Collection[str]) -> None:
    """Raise `StageError` for a quantised model, unless only weights are, of other operators than `operators`."""
    types = {node.op_type for node in iterate_nodes(model)}
    found = {name for name in types if name in _QUANTIZED or name.startswith((*_QUANTIZED_STEMS, *_INTEGER_STEMS))}
    found |= {name for name, plain in _WEIGHTS_ONLY.items() if name in types and (not operators or plain in operators)}
    if found:
        hint = "give the original floating-point model, or keep this one: precision.method = 'none'"
        raise StageError("the model is already quantised", details=(f"it has {', '.join(sorted(found))}",), hint=hint)


def choose_operators(
    model: ModelProto, operators: Collection[str], excluded: Collection[str], default: Collection[str]
) -> list[str] | None:
    """The operator types to quantise; None for the reference's own choice. Raises `StageError`."""
    present = {node.op_type for node in iterate_nodes(model)}
    check_operators(present, (*operators, *excluded))
    if not operators and not excluded:
        return None
    chosen = [name for name in (operators or default) if name not in excluded]
    if not present.intersection(chosen):
        raise nothing_quantized(f"the model has none of the operators to quantise: {_list_names(chosen)}")
    return chosen


def check_operators(present: Collection[str], names: Iterable[str]) -> None:
    """Raise `StageError` for the name of an unknown operator that the model does not have either."""
    for name in names:
        # A preset names operators that a model may lack; an unknown one is misspelt.
        if name not in present and name not in _KNOWN and not onnx.defs.has(name):
            raise _unknown("operator", name, present)


def check_nodes(model: ModelProto, excluded: Iterable[str]) -> None:
    """Raise `StageError` for a node name that the model does not have."""
    present = {node.name for node in iterate_nodes(model) if node.name}
    for name in excluded:
        if name not in present:
            raise _unknown("node", name, present)


def nothing_quantized(detail: str) -> StageError:
    """The error of a method that quantises nothing, which is not a success."""
    hint = "name other operators, exclude fewer, or keep the model's precision with precision.method = 'none'"
    return StageError("nothing was quantised", details=(detail,), hint=hint)


def _unknown(kind: str, name: str, present: Collection[str]) -> StageError:
    close = difflib.get_close_matches(name, sorted(present), n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"it has {_list_names(sorted(present))}"
    return StageError(f"the model has no {kind} {name!r}", hint=hint)


def _list_names(names: Collection[str]) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:_MAX_NAMED])
    return f"{shown} and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else shown or "none"
