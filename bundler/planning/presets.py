"""Optimum's optimisation levels, as what they stand for here.

Read in optimum-onnx 0.1.0: `AutoOptimizationConfig` (levels), `OptimizationConfig` (what is on and off by itself),
`ORTOptimizer.optimize` (fusion first, then half precision with inputs and outputs kept). Optimum says that attention
takes the raw mask by default; the library that it calls makes lengths of it for BERT, which is wrong for padding on the
left. Here it is as it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

NOT_IN_OPTIMUM: Final = ("embed_layer_norm", "group_norm", "packed_kv")
"""Fusions that Optimum leaves out unless asked: quantisers do not take the first, the others are for diffusion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """What a level stands for: what is baked, whether the operators of transformers are fused, but for the fusions
    `disabled`, and the precision. `gpu_only` levels are for GPUs: half precision is slower elsewhere.
    """

    title: str
    level: Literal["basic", "extended"]
    fuses: bool = False
    disabled: tuple[str, ...] = ()
    gelu_approximation: bool = False
    precision: str = "none"
    gpu_only: bool = False


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
        gpu_only=True,
    ),
}
