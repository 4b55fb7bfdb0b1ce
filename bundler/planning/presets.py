"""Optimum's optimisation levels as settings of bundler.

Read in optimum-onnx 0.1.0: `AutoOptimizationConfig` (levels), `OptimizationConfig` (what is on and off by itself),
`ORTOptimizer.optimize` (fusion first, then half precision with inputs and outputs kept). Optimum documents
attention with the raw mask as default, but the library that it calls converts masks to lengths for BERT, which is wrong
for left padding; here the raw mask is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

NOT_IN_OPTIMUM: Final = ("embed_layer_norm", "group_norm", "packed_kv")
"""Fusions that Optimum disables by default: quantisers do not support the first, the others are for diffusion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """The settings of a level: optimisation level, transformer fusions except those in `disabled`, and precision."""

    title: str
    level: Literal["basic", "extended"]
    fuses: bool = False
    disabled: tuple[str, ...] = ()
    gelu_approximation: bool = False
    precision: str = "none"


PRESETS: Mapping[str, Preset] = {
    "O1": Preset(title="basic general optimisations", level="basic"),
    "O2": Preset(
        title="basic and extended general optimisations, transformers-specific fusions",
        level="extended",
        fuses=True,
        disabled=NOT_IN_OPTIMUM,
    ),
    "O3": Preset(
        title="as O2, with GELU approximation",
        level="extended",
        fuses=True,
        disabled=NOT_IN_OPTIMUM,
        gelu_approximation=True,
    ),
    "O4": Preset(
        title="as O3, with mixed precision (fp16), for GPUs only",
        level="extended",
        fuses=True,
        disabled=NOT_IN_OPTIMUM,
        gelu_approximation=True,
        precision="fp16",
    ),
}
