"""Inputs, facts and options of the stage `build_engine`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="build_engine",
    title="Build the engine",
    inputs=("model",),
    produces="model",
    packages=("onnx", "numpy", "tensorrt-rtx-cu13-bindings", "tensorrt-rtx-cu13-libs"),
    changes_model=True,
    time_limit=1800.0,
)
"""Facts: those of a placement (`bundler.onnxkit.placement_facts`), where `devices` are the compute capabilities of the
engine; `platform` is its operating system; `tf32` says that products of 32-bit floats are computed with 10 bits of
mantissa; `profiles` are the shapes of dynamic inputs that it accepts.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`provider` is the runtime's name of the provider that loads the engine; `devices` are compute capabilities
    (`8.9`); one engine is built for all of them.
    `profiles` holds, by input, the smallest, the typical and the largest shape; every input with a dynamic dimension
    requires one. For an input whose values are shapes they are its values. `half` requires a model in half precision:
    TensorRT for RTX computes in the types that the model declares, so it must have been converted before.
    `embed` puts the engine into the model file instead of a file beside it. `platform` (`linux`, `windows`) is the
    operating system of the GPUs, to be checked: an engine runs only on the system that it was built on.
    """

    provider: str
    devices: tuple[str, ...]
    profiles: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    half: bool = False
    embed: bool = False
    platform: str = ""
