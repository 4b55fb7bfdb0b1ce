"""Optimum's optimisation levels, as what they stand for here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """What a level stands for: what is baked, whether the operators of transformers are fused, and the precision."""

    level: Literal["basic", "extended"]
    fuses: bool = False
    gelu_approximation: bool = False
    precision: str = "none"


PRESETS: Mapping[str, Preset] = {
    "O1": Preset(level="basic"),
    "O2": Preset(level="extended", fuses=True),
    "O3": Preset(level="extended", fuses=True, gelu_approximation=True),
    "O4": Preset(level="extended", fuses=True, gelu_approximation=True, precision="fp16"),
}
