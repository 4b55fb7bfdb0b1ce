"""What `compile_context` takes and makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="compile_context",
    title="Compile for the device",
    inputs=("model",),
    produces="model",
    packages=("onnx", "onnxruntime"),
    changes_model=True,
    time_limit=1800.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """See the module's documentation."""

    provider: str
    library: str
    options: Mapping[str, str] = field(default_factory=dict)
    select: Mapping[str, str] = field(default_factory=dict)
    embed: bool = False
