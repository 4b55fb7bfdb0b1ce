"""Inputs, facts and options of the stage `inspect`."""

from __future__ import annotations

from dataclasses import dataclass

from bundler.model.facts import ModelFacts
from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="inspect",
    title="Inspect the model",
    inputs=("model",),
    produces=None,
    packages=("onnx", "onnxruntime"),
    time_limit=600.0,
    facts=ModelFacts,
    least_time=60.0,
)
"""Facts: `bundler.model.facts.ModelFacts`, encoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`name` is the model's name in messages."""

    name: str = "model"
