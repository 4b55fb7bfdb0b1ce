"""Rows of scores: which place is the highest, and whether an output looks like scores of classes at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bundler.onnxkit.column_units import find_units, ranges_of

MOST_CLASSES: Final = 65_536
"""Entries of the last axis up to which its rows are compared by their highest place; vocabularies are larger."""

MOST_ROWS: Final = 65_536
"""Rows of one output that are looked at to tell scores from other numbers."""

TIE: Final = 1e-6
"""Two scores tie that differ by so little of their magnitude: rounding decides which is the higher."""

DECIDED: Final = 0.5
"""A row is decided where its highest value leads by so much of the output's own spread (standard deviation)."""

SATURATED: Final = 0.999
"""A probability from here on leaves no room in which a change would show."""

MOST_KEPT: Final = 4096
"""Rows that are kept to see whether their columns are of one unit."""

MOST_COLUMNS: Final = 256
"""Rows with more columns are not: heads of several units have few."""

OUTERMOST: Final = 0.2
"""The share of the least and of the greatest values of a column that do not count there."""

PAIR: Final = 2
"""The least of dimensions, and of classes."""


def has_rows(array: np.ndarray) -> bool:
    """Whether the last axis could be classes: floating-point numbers of at least two dimensions."""
    return array.ndim >= PAIR and PAIR <= array.shape[-1] <= MOST_CLASSES and array.dtype.kind == "f"


def best_places(scores: np.ndarray) -> np.ndarray:
    """The place of each row's highest score, over all axes but the last; NaN is never the highest."""
    rows = scores.reshape(-1, scores.shape[-1])
    places: np.ndarray = np.argmax(np.where(np.isnan(rows), -np.inf, rows), axis=1)
    return places


def count_agreeing(reference: np.ndarray, actual: np.ndarray) -> tuple[int, int]:
    """How many rows there are, and in how many the highest of `actual` is that of `reference`, or ties with it."""
    rows = reference.reshape(-1, reference.shape[-1])
    every = np.arange(len(rows))
    best, found = (rows[every, best_places(scores)] for scores in (reference, actual))
    near = TIE * np.abs(np.where(np.isfinite(best), best, 0))
    return len(rows), int((np.isnan(best) | (found >= best - near)).sum())


def _hold_several_units(rows: np.ndarray) -> bool:
    """Whether columns differ in unit. The outermost rows do not count: one loud sample makes no unit."""
    least, greatest = np.quantile(rows, (OUTERMOST, 1 - OUTERMOST), axis=0)
    return len(list(find_units(*ranges_of(np.clip(rows, least, greatest))))) > 1


def _without_masks(rows: np.ndarray) -> np.ndarray:
    """Rows of numbers, with the least of each in place of minus infinity, which masks a class; others are left out."""
    masked = np.isneginf(rows)
    kept = (np.isfinite(rows) | masked).all(axis=1) & (np.isfinite(rows).sum(axis=1) >= PAIR)
    rows, masked = rows[kept], masked[kept]
    if not masked.any():
        return rows
    least = np.where(masked, np.inf, rows).min(axis=1, keepdims=True)
    return np.where(masked, least, rows)


@dataclass(slots=True)
class ScoreRows:
    """Gathers what rows of one output have in common. Scores of classes differ from an embedding, a picture or a mask
    in that most rows have a winner: in those the two highest values of a row are neighbours, and which of them is the
    higher says nothing.
    """

    leads: list[np.ndarray] = field(default_factory=list)
    places: set[int] = field(default_factory=set)
    rows: int = 0
    likely: bool = True
    tops: list[np.ndarray] = field(default_factory=list)
    kept: dict[int, list[np.ndarray]] = field(default_factory=dict)
    """Some rows by their number of columns, to see whether these are of one unit."""

    def add(self, array: np.ndarray) -> None:
        """Take in one sample."""
        if not has_rows(array):
            self.likely = False
            return
        rows = _without_masks(array.reshape(-1, array.shape[-1])[: max(0, MOST_ROWS - self.rows)])
        if not rows.size:
            return
        self.rows += len(rows)
        self._keep(rows)
        two = np.partition(rows, -2, axis=1)[:, -2:]
        self.leads.append(two[:, 1] - two[:, 0])
        self.places.update(np.unique(rows.argmax(axis=1)).tolist())
        sums = rows.sum(axis=1)
        probable = bool((rows >= 0).all() and np.abs(sums - 1).max() < 1e-3)  # noqa: PLR2004 - a softmax in half precision
        self.tops.append(two[:, 1] if probable else np.empty(0))

    def _keep(self, rows: np.ndarray) -> None:
        room = MOST_KEPT - sum(len(one) for kept in self.kept.values() for one in kept)
        if room > 0 and rows.shape[1] <= MOST_COLUMNS:
            self.kept.setdefault(rows.shape[1], []).append(rows[:room].copy())

    def look_like_scores(self, spread: float) -> bool:
        """Whether the highest place varies and most rows are decided, for an output of this standard deviation."""
        if not self.likely or len(self.places) < PAIR or spread <= 0:
            return False
        if any(_hold_several_units(np.concatenate(kept)) for kept in self.kept.values()):
            return False  # of a box beside scores, which number is the highest says nothing
        return float(np.median(np.concatenate(self.leads))) >= DECIDED * spread

    def saturated_share(self) -> float:
        """Of rows that are probabilities, the share whose highest is as good as 1; 0 where they are none."""
        tops = np.concatenate(self.tops) if self.tops else np.empty(0)
        return float((tops >= SATURATED).mean()) if tops.size and tops.size == self.rows else 0.0
