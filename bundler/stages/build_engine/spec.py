"""What `build_engine` takes and makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="build_engine",
    title="Build the engine",
    inputs=("model",),
    produces="model",
    packages=("onnx", "tensorrt_rtx"),
    changes_model=True,
    time_limit=1800.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """See the module's documentation."""

    provider: str
    devices: tuple[str, ...]
    profiles: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    half: bool = False
    embed: bool = False
