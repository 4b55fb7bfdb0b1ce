"""Inputs, facts and options of the stage `derive_operators`."""

from __future__ import annotations

from dataclasses import dataclass

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="derive_operators",
    title="Derive the required operators",
    inputs=("model",),
    produces="config",
    packages=("onnx", "onnxruntime", "flatbuffers"),
    optional=True,
    least_time=900.0,
)
"""Makes `required_operators.config` in ONNX Runtime's own format. Facts: `operators`, a list of {`domain`, `opset`,
`operator`, `types`}; `types` are those that the operator is used with, or empty where the runtime keeps all.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """No options."""
