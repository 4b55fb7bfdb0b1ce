"""What `inspect` takes and finds."""

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
"""Its facts are `bundler.model.facts.ModelFacts`, encoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`name` is what people call the model."""

    name: str = "model"
