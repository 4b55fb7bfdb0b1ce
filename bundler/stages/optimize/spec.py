"""Inputs, facts and options of the stage `optimize`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="optimize",
    title="Optimise",
    inputs=("model",),
    produces="model",
    packages=("onnx", "onnxruntime"),
    changes_model=True,
    least_time=900.0,
)
"""Facts: `level`, `nodes_before`, `nodes_after`, `operators` (count by name, after), `bytes` (all files), and
`disabled_optimizers`: those of the runtime that break this model, also where it is loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`level` selects the optimisation ahead of time: none, what every runtime can run, or what the runtime's CPU
    provider can run; never layouts of one CPU class. Where the optimised weights have `external_minimum` bytes or more,
    those of `external_threshold` bytes or more go to a separate file that the runtime maps (None: all are embedded).
    `int8_allowed` keeps signed 8-bit weights, which are fast on Arm and slow on x86: the target decides.
    `disabled_optimizers` are disabled, by the runtime's names. With `single_precision`, float64 becomes float32 first,
    except in inputs and outputs.
    """

    level: Literal["none", "basic", "extended"] = "extended"
    external_threshold: int | None = None
    external_minimum: int = 0
    int8_allowed: bool = False
    disabled_optimizers: tuple[str, ...] = ()
    single_precision: bool = False
