"""What a precision method is, and how a provider names one that it alone wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bundler.model.plan import HOST

Loss = Literal["none", "half", "bfloat16", "eight-bit", "four-bit"]
"""How coarsely numbers are rounded, which decides the accuracy gate where a profile leaves it open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method. `options` are its own for the stage; `takes` maps keys of a profile's `precision` to options of the
    stage that they replace. A method that only differs from a `plain` one in its ranges, or in the nodes that it keeps
    in floating point, is at best as small, and as fast unless floating point is faster: it is for models whose gate the
    plain one misses. One that `keeps_constants` stores weights in another type than they are used in, which folding
    constants would undo.
    """

    name: str
    title: str
    stage: str
    options: Mapping[str, Any]
    takes: Mapping[str, str]
    loss: Loss
    needs_calibration: bool = False
    plain: str = ""
    keeps_constants: bool = False
    environment: str = HOST
    environments: Mapping[str, str] = field(default_factory=dict)


def same(*names: str) -> dict[str, str]:
    """Keys of a profile's `precision` that the stage's options have the same names as."""
    return {name: name for name in names}


STATIC_INT8 = ("static-int8", "static-int8-percentile", "static-int8-mixed", "static-int8-full")
LOW_BIT_WEIGHTS = ("weights-8bit", "weights-4bit", "weights-4bit-hqq", "weights-4bit-gptq")
"""Families of methods that providers run as a whole."""

EXCLUSIONS = same("exclude_operators", "exclude_nodes")
TYPES = same("activation_type", "weight_type")
QUANTIZED = same("per_channel", "operators", "keep_float") | EXCLUSIONS


def wanted_by_provider(name: str, title: str, *, takes: Mapping[str, str], **options: Any) -> Method:
    """Quantisation (int8, or 16-bit activations) as a provider expects it: `options` of stage `quantize_static`."""
    return Method(
        name=name,
        title=title,
        stage="quantize_static",
        options=options,
        takes=takes,
        loss="eight-bit",
        needs_calibration=True,
    )
