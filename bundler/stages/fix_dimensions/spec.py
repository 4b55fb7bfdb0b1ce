"""Inputs, facts and options of the stage `fix_dimensions`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bundler.model.shapes import FixedShape
from bundler.model.signature import Signature
from bundler.model.stage import StageSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was fixed, and the signature after it."""

    dimensions: Mapping[str, int]
    shapes: Mapping[str, FixedShape]
    signature: Signature


SPEC = StageSpec(
    name="fix_dimensions",
    title="Fix dimensions",
    inputs=("model",),
    produces="model",
    packages=("onnx", "onnxruntime"),
    changes_model=True,
    least_time=300.0,
    facts=Facts,
)
"""Weights of models that have external data, or more than 64 MiB, are in `model.onnx.data`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`dimensions` gives each named dimension its size, `shapes` the others: by input, None where nothing is fixed."""

    dimensions: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, FixedShape] = field(default_factory=dict)
