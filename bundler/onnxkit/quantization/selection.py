"""Which operators and nodes are quantised, checked against the model: a misspelt name must not go unnoticed."""

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
"""What the reference quantises statically when nobody says what."""
DYNAMIC_OPERATORS: Final = tuple(IntegerOpsRegistry)
_KNOWN: Final = frozenset({*STATIC_OPERATORS, *DYNAMIC_OPERATORS})

_QUANTIZED: Final = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})
_QUANTIZED_STEMS: Final = (
    "QLinear",
    "QGemm",
    "QAttention",
    "QMoE",
    "DynamicQuantize",
    "NhwcQLinear",
    "QEmbed",
    "QOrdered",
)
_INTEGER_STEMS: Final = ("ConvInteger", "MatMulInteger")
_WEIGHTS_ONLY: Final = {"MatMulNBits": "MatMul", "MatMulBnb4": "MatMul", "GatherBlockQuantized": "Gather"}
_NAMED: Final = 5


def check_not_quantized(model: ModelProto, operators: Collection[str]) -> None:
    """Raises `StageError` for a model that is quantised already.

    Weights that alone have few bits may stay, if `operators` names others: then nothing is quantised twice.
    """
    types = {node.op_type for node in iterate_nodes(model)}
    found = {name for name in types if name in _QUANTIZED or name.startswith((*_QUANTIZED_STEMS, *_INTEGER_STEMS))}
    found |= {name for name, plain in _WEIGHTS_ONLY.items() if name in types and (not operators or plain in operators)}
    if found:
        raise StageError(
            "the model is already quantised",
            details=(f"it has {', '.join(sorted(found))}",),
            hint="give the floating-point model that it was made from, or keep it: precision.method = 'none'",
        )


def choose_operators(
    model: ModelProto, operators: Collection[str], excluded: Collection[str], default: Collection[str]
) -> list[str] | None:
    """The operator types to quantise; None where the reference's own choice stands. Raises `StageError`."""
    present = {node.op_type for node in iterate_nodes(model)}
    check_operators(present, (*operators, *excluded))
    if not operators and not excluded:
        return None
    chosen = [name for name in (operators or default) if name not in excluded]
    if not present.intersection(chosen):
        raise nothing_quantized(f"of the operators to quantise the model has none: {_few(chosen)}")
    return chosen


def check_operators(present: Collection[str], names: Iterable[str]) -> None:
    """Raises `StageError` for the name of an operator that neither the model nor anybody else has."""
    for name in names:
        # A preset names operators that not every model has; what nobody has is misspelt.
        if name not in present and name not in _KNOWN and not onnx.defs.has(name):
            raise _unknown("operator", name, present)


def check_nodes(model: ModelProto, excluded: Iterable[str]) -> None:
    """Raises `StageError` for a node name that the model has not."""
    present = {node.name for node in iterate_nodes(model) if node.name}
    for name in excluded:
        if name not in present:
            raise _unknown("node", name, present)


def nothing_quantized(detail: str) -> StageError:
    """A method that quantises nothing is not a success."""
    return StageError(
        "nothing was quantised",
        details=(detail,),
        hint="name other operators, exclude fewer, or keep the model as it is with precision.method = 'none'",
    )


def _unknown(kind: str, name: str, present: Collection[str]) -> StageError:
    close = difflib.get_close_matches(name, sorted(present), n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"it has {_few(sorted(present))}"
    return StageError(f"the model has no {kind} {name!r}", hint=hint)


def _few(names: Collection[str]) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown or "none"
