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
    packages=("onnx", "numpy", "tensorrt-rtx-cu13-bindings", "tensorrt-rtx-cu13-libs"),
    changes_model=True,
    time_limit=1800.0,
)
"""Facts: those of a placement (`bundler.onnxkit.placement_facts`), where `devices` are the compute capabilities that
the engine is for; `platform` is the system that it is for; `tf32` tells that products of 32-bit floats are computed
with 10 bits of mantissa; `profiles` the shapes of dynamic inputs that it takes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`provider` is the runtime's name of the provider that opens the engine; `devices` are compute capabilities
    (`8.9`), for all of which one engine is built.

    `profiles` holds, by input, the smallest, the usual and the greatest shape; every input with a dynamic dimension
    needs one. For an input whose values are shapes they are its values. `half` asks that the model computes in half
    precision: TensorRT for RTX computes in the types that the model declares, so it must have been converted before.
    `embed` puts the engine into the model file in place of one beside it. `platform` (`linux`, `windows`) is the system
    of the GPUs, where that is to be checked: an engine is for the system that it was built on.
    """

    provider: str
    devices: tuple[str, ...]
    profiles: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    half: bool = False
    embed: bool = False
    platform: str = ""
