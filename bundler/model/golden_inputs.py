"""The inputs of a golden set: supported sizes, and weaknesses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GoldenKind = Literal["samples", "synthetic"]
"""Whether a bundle contains a user's samples, or seeded inputs like them."""

LostBy = Literal["nothing", "device", "method"]
"""What loses precision: nothing; the device's arithmetic, or the model as it was given; or a method of the build."""

NOTHING_RAN = "the model did not run on any seeded input"
"""What an error says where no size runs that seeded inputs were made of."""

WeaknessKind = Literal[
    "synthetic",
    "few-samples",
    "one-size",
    "branch-not-taken",
    "branches-not-followed",
    "output",
    "repeats-input",
    "calibrates",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness:
    """One thing that the golden set cannot show. `name` is the dimension, node or output that it is about, or empty;
    `text` is a sentence for people.
    """

    kind: WeaknessKind
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedSize:
    """A size at which the model failed, with the runtime's message."""

    size: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedDimension:
    """A free dimension of the inputs and the sizes that were tried: `symbol`, or empty for axis `axis` of `port`.

    `sizes` are those that ran; `label` is what people call it.
    """

    label: str
    symbol: str
    port: str
    axis: int
    sizes: tuple[int, ...]
    refused: tuple[RefusedSize, ...]

    @property
    def only_size(self) -> int | None:
        """The one size that ran, where others were tried and refused."""
        return self.sizes[0] if len(self.sizes) == 1 and self.refused else None
