"""Whether a model does better than one that gives the same answer to every input.

An output may owe most of its size to what no input changes: an offset for each class, a fill that masks places, a
prior. Noise beside that looks small, and may still be all that tells one input from another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

MAX_ELEMENTS: Final = 4_000_000
"""Of one output, in memory at once; samples beyond are not looked at here."""

LEAST_UNITS: Final = 4
"""Fewer answers of one shape say nothing of what they have in common."""

WIDE: Final = 8
"""From so many elements on an answer has a level of its own, which is left out, too."""

LARGE: Final = 2.0
"""Columns that stay within 0 and 1 are judged apart from those that go beyond this: scores beside coordinates."""

Kept = tuple[np.ndarray, np.ndarray]
"""Reference and error of some units."""


@dataclass(slots=True)
class TrivialAnswers:
    """Gathers answers and their errors. A unit is a row along the first axis, which is the batch of most outputs."""

    kept: dict[tuple[int, ...], list[Kept]] = field(default_factory=dict)
    elements: int = 0

    def add(self, reference: np.ndarray, error: np.ndarray) -> None:
        """Take in one sample's output; what is not finite has neither signal nor error."""
        if not reference.size or self.elements + reference.size > MAX_ELEMENTS:
            return
        self.elements += reference.size
        rows = reference.reshape(1, -1) if reference.ndim < 2 else reference  # noqa: PLR2004 - rows and something in them
        finite = np.isfinite(rows)
        pair = (np.where(finite, rows, 0.0), np.where(finite, error.reshape(rows.shape), 0.0))
        self.kept.setdefault(rows.shape[1:], []).append(pair)

    def ratio_db(self) -> float | None:
        """The median unit's signal over the median unit's noise, of the part of the output that does worst. The signal
        is what is left without the mean of each place over all units (and, of wide units, the unit's own mean). An
        answer that no input changes reaches about 0. None where there are too few units, or no noise.
        """
        found = [ratio for pair in self._groups() for part in _parts(pair) if (ratio := _ratio(*part)) is not None]
        return min(found, default=None)

    def _groups(self) -> Iterator[Kept]:
        for pairs in self.kept.values():
            reference, error = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
            if len(reference) >= LEAST_UNITS:
                yield reference, error


def _parts(pair: Kept) -> Iterator[Kept]:
    """The whole, or columns of scores and other columns each for themselves, where an axis holds both."""
    reference, error = pair
    for axis in {1, reference.ndim - 1}:
        if reference.ndim < 2 or reference.shape[axis] < 2:  # noqa: PLR2004 - one column cannot differ from another
            continue
        columns = np.moveaxis(reference, axis, -1).reshape(-1, reference.shape[axis])
        least, greatest = columns.min(axis=0), columns.max(axis=0)
        scores = (least >= 0) & (greatest <= 1) & (greatest > least)
        large = np.maximum(np.abs(least), np.abs(greatest)) > LARGE
        if scores.any() and large.any():
            for chosen in (scores, ~scores):
                yield np.compress(chosen, reference, axis), np.compress(chosen, error, axis)
            return
    yield pair


def _ratio(reference: np.ndarray, error: np.ndarray) -> float | None:
    units, count = reference.reshape(len(reference), -1), reference[0].size
    around = units - units.mean(axis=0)
    if count >= WIDE:
        around = around - around.mean(axis=1, keepdims=True)
    signals = np.square(around).sum(axis=1)
    noises = np.square(error.reshape(units.shape)).sum(axis=1)
    signal, noise = _middle(signals), _middle(noises)
    return 10 * (math.log10(signal) - math.log10(noise)) if signal and noise else None


def _middle(energies: np.ndarray) -> float:
    present = energies[energies > 0]
    return float(np.median(present)) if present.size else 0.0
