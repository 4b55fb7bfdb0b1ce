"""What `check_placement` takes and makes."""

from __future__ import annotations

from dataclasses import dataclass

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="check_placement",
    title="Check the placement",
    inputs=("model",),
    produces=None,
    packages=("onnx", "onnxruntime"),
    changes_model=False,
    time_limit=1800.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """See the module's documentation."""

    checker: str
    provider: str
