"""The inputs and outputs of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Dimension = int | str | None
"""A fixed size, a named symbol, or unknown."""

Kind = Literal["tensor", "sparse_tensor", "sequence", "map", "optional"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueType:
    """The type of one ONNX value.

    tensor, sparse_tensor: `element_type` is NumPy's name (`float32`, `int64`, `str`, `bfloat16`, …), `shape` is None
    when the rank is unknown. sequence and optional: `element` is what they hold. map: `key_type` and `element`.
    """

    kind: Kind = "tensor"
    element_type: str | None = None
    shape: tuple[Dimension, ...] | None = None
    key_type: str | None = None
    element: ValueType | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One named input or output of a model. `optional` inputs have a default (an initializer of the same name)."""

    name: str
    type: ValueType
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Required and optional inputs, and outputs, each in the model's order."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of dynamic dimensions of the inputs, in order of first appearance."""
        seen: dict[str, None] = {}
        for port in self.inputs:
            for dimension in port.type.shape or ():
                if isinstance(dimension, str):
                    seen.setdefault(dimension)
        return tuple(seen)


def find_mask(name: str, element_type: str | None) -> bool | None:
    """What lets everything through an input that is a mask, by its name: True, or False for a Boolean one that marks
    padding. Hiding everything makes a softmax of nothing, NaN. None where it is not a mask.
    """
    lowered = name.lower()
    return not (element_type == "bool" and "pad" in lowered) if "mask" in lowered else None


def describe_type(value: ValueType) -> str:
    """`float32[batch, 3, 224, 224]`, `sequence(map(int64, float32))`: one type as a person reads it."""
    if value.kind == "map":
        inner = describe_type(value.element) if value.element else "?"
        return f"map({value.key_type}, {inner})"
    if value.kind in ("sequence", "optional"):
        inner = describe_type(value.element) if value.element else "?"
        return f"{value.kind}({inner})"
    shape = "…" if value.shape is None else ", ".join("?" if d is None else str(d) for d in value.shape)
    prefix = "sparse " if value.kind == "sparse_tensor" else ""
    return f"{prefix}{value.element_type}[{shape}]"
