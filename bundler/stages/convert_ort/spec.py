"""Inputs, facts and options of the stage `convert_ort`."""

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
"""Facts: `bytes`, and `format` (`ort`, or `onnx` for a model that was not converted)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """No options: the graph is written without changes, because the stage `optimize` ran before."""
