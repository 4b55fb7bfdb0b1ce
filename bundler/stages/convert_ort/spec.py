"""What `convert_ort` takes and makes."""

from __future__ import annotations

from dataclasses import dataclass

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="convert_ort",
    title="Convert to ORT format",
    inputs=("model",),
    produces="model",
    packages=("onnx", "onnxruntime", "flatbuffers"),
    changes_model=True,
    least_time=900.0,
)
"""Facts: `bytes`, and `format` (`ort`, or `onnx` when the model goes on as it was)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """There is nothing to choose: the graph is written as it stands, for the optimise stage came before."""
