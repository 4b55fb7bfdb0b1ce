"""Inputs, facts and options of the stage `convert_float`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="convert_float",
    title="Convert to 16-bit floats",
    inputs=("model", "samples?"),
    produces="model",
    packages=("onnx", "onnxruntime", "numpy", "ml-dtypes"),
    changes_model=True,
    time_limit=4 * 3600.0,
)
"""Facts: `type`, `scope` and `keep_io` as requested; `weights` (how many were converted), `weight_bytes_before`
and `weight_bytes_after` of all 32-bit weights; `clamped` (values out of range, by weight); `kept` (nodes that stay in
32 bits, by name) and `kept_operators` (those without a 16-bit form); `runs_on_cpu`; `bytes` (all files).

With samples, `figures` (by output, before any search, in which means whose sums overflow are kept) and `overflowing`
(nodes whose results are out of range, or that read such values); after a search, `search`: `rounds`, `samples`, `nodes`
(of the model) and `figures` (of the result).
Figures are those of the emulated device.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`scope` is the whole `model`, or its `weights` alone: those are stored in 16 bits and widened when the model is
    loaded, which every runtime supports. `keep_io` leaves inputs and outputs in 32 bits. `block_operators` (besides
    those that the reference keeps) and `block_nodes` (named as in the input model) stay in 32 bits.

    `search` finds further nodes to keep, until the emulated outputs of a half-precision device meet `gate` (an encoded
    `bundler.model.runtime.Gate`) for at most `search_samples` of the samples.
    """

    type: Literal["float16", "bfloat16"] = "float16"
    scope: Literal["model", "weights"] = "model"
    keep_io: bool = True
    block_operators: tuple[str, ...] = ()
    block_nodes: tuple[str, ...] = ()
    search: bool = False
    search_samples: int = 8
    gate: Mapping[str, Any] = field(default_factory=dict)
