"""Check whether a model is better than one with constant outputs.

Most of an output's size may come from what no input changes (an offset for each class, a fill value of masked places, a
prior), from a level that all places of a row share, or from columns of another unit (a salary beside a rating, boxes
beside scores). Noise looks small in comparison, and may still hide everything that depends on the input. So the output
is examined in several ways, and the worst one counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bundler.onnxkit.column_units import find_units, ranges_of

MAX_ELEMENTS: Final = 4_000_000
"""Limit for one output's elements in memory; samples beyond it are ignored here."""
MAX_SAMPLE_ELEMENTS: Final = 65_536
"""Limit for one sample: larger ones are subsampled by 2, 4, …, equally in all samples of a shape."""
MIN_UNITS: Final = 4
"""Minimum number of outputs of one shape for finding what they have in common."""
MIN_WIDE_ELEMENTS: Final = 8
"""Number of elements from which an output, or a row, has a level of its own, which is subtracted as well."""
MIN_IMAGE_RANK: Final = 4
"""Number of dimensions from which the second axis holds channels of each place, as in NCHW."""
Kept = tuple[np.ndarray, np.ndarray]
"""Reference and error of some units."""


@dataclass(slots=True)
class TrivialOutputs:
    """Collects outputs and their errors. A unit is a row along the first axis, which is the batch of most outputs."""

    kept: dict[tuple[int, ...], list[Kept]] = field(default_factory=dict)
    elements: int = 0

    def add(self, reference: np.ndarray, error: np.ndarray) -> None:
        """Add one sample's output; values that are not finite count as zero signal and zero error."""
        if not reference.size or self.elements >= MAX_ELEMENTS:
            return
        rows = reference.reshape(1, -1) if reference.ndim < 2 else reference  # noqa: PLR2004 - rows and something in them
        chosen = _thin_out(rows.shape)
        rows, error = rows[chosen], error.reshape(rows.shape)[chosen]
        self.elements += rows.size
        finite = np.isfinite(rows)
        pair = (np.where(finite, rows, 0.0), np.where(finite, error, 0.0))
        self.kept.setdefault(rows.shape[1:], []).append(pair)

    def ratio_db(self) -> float | None:
        """The worst signal-to-noise ratio in decibels. Outputs that do not depend on the input reach about 0.

        Examined are outputs of one shape, by the median output and without the mean of each place (`_output_ratio`),
        and columns of one unit over all places of all outputs, without the mean of each column (`_column_ratio`). None
        where there are too few outputs, or no noise.
        """
        found = [*self._output_ratios(), *self._column_ratios()]
        return min((ratio for ratio in found if ratio is not None), default=None)

    def _output_ratios(self) -> Iterator[float | None]:
        for pairs in self.kept.values():
            reference, error = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
            if len(reference) < MIN_UNITS:
                continue
            for axis, columns in _split(reference):
                yield _output_ratio(np.compress(columns, reference, axis), np.compress(columns, error, axis))

    def _column_ratios(self) -> Iterator[float | None]:
        for (dimensions, axis, _), pairs in self._by_columns().items():
            reference, error = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
            if len(reference) < MIN_UNITS:
                continue
            leveled = reference.shape[1] >= MIN_WIDE_ELEMENTS and (axis == -1 or dimensions >= MIN_IMAGE_RANK)
            for columns in find_units(*ranges_of(reference)):
                yield _column_ratio(reference[:, columns], error[:, columns], leveled=leveled)

    def _by_columns(self) -> dict[tuple[int, int, int], list[Kept]]:
        """Places as rows, with the entries of the last axis, or of the second, as columns."""
        found: dict[tuple[int, int, int], list[Kept]] = {}
        for shape, pairs in self.kept.items():
            for axis in (-1, 0) if len(shape) > 1 else (-1,):
                place = axis if axis < 0 else 1
                turned = [(_as_rows(one, place), _as_rows(other, place)) for one, other in pairs]
                found.setdefault((len(shape) + 1, axis, shape[axis]), []).extend(turned)
        return found


def _thin_out(shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Every n-th place of the largest axes, so that at most `MAX_SAMPLE_ELEMENTS` are left."""
    steps, sizes = [1] * len(shape), list(shape)
    while math.prod(sizes) > MAX_SAMPLE_ELEMENTS:
        largest = sizes.index(max(sizes))
        steps[largest] *= 2
        sizes[largest] = -(-shape[largest] // steps[largest])
    return tuple(slice(None, None, step) for step in steps)


def _as_rows(array: np.ndarray, axis: int) -> np.ndarray:
    return np.moveaxis(array, axis, -1).reshape(-1, array.shape[axis])


def _split(reference: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The columns of each unit along the axis with several units, or all of them."""
    for axis in sorted({1, reference.ndim - 1}):
        units = list(find_units(*ranges_of(_as_rows(reference, axis))))
        if len(units) > 1:
            yield from ((axis, columns) for columns in units)
            return
    yield 1, np.ones(reference.shape[1], dtype=bool)


def _output_ratio(reference: np.ndarray, error: np.ndarray) -> float | None:
    """The median unit's signal over the median unit's noise. The signal is the rest after subtracting the mean of each
    place over all units and, of wide units, the unit's own mean.
    """
    units, count = reference.reshape(len(reference), -1), reference[0].size
    around = units - units.mean(axis=0)
    if count >= MIN_WIDE_ELEMENTS:
        around = around - around.mean(axis=1, keepdims=True)
    signal = _middle(np.square(around).sum(axis=1))
    return decibels(signal, _middle(np.square(error.reshape(units.shape)).sum(axis=1)))


def _column_ratio(reference: np.ndarray, error: np.ndarray, *, leveled: bool) -> float | None:
    """The signal of all rows over their noise. The signal is the rest after subtracting the mean of each column; where
    rows are `leveled`, each row's own mean is subtracted from both.
    """
    around = reference - reference.mean(axis=0)
    if leveled:
        around, error = (one - one.mean(axis=1, keepdims=True) for one in (around, error))
    return decibels(float(np.square(around).sum()), float(np.square(error).sum()))


def decibels(signal: float, noise: float) -> float | None:
    """Signal to noise; None without noise or without signal."""
    return 10 * (math.log10(signal) - math.log10(noise)) if signal and noise else None


def _middle(energies: np.ndarray) -> float:
    present = energies[energies > 0]
    return float(np.median(present)) if present.size else 0.0
