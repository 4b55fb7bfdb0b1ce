"""Rows of scores: find their highest place, and whether an output looks like class scores at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bundler.onnxkit.column_units import find_units, ranges_of

MAX_CLASSES: Final = 65_536
"""Maximum size of the last axis for comparing rows by their highest place; vocabularies are larger."""
MAX_ROWS: Final = 65_536
"""Maximum number of an output's rows that are examined."""
MAX_TIE_DIFFERENCE: Final = 1e-6
"""Two scores tie whose relative difference is at most this: rounding decides which one is higher."""
MIN_DECIDED_LEAD: Final = 0.5
"""A row is decided where its highest value leads by this share of the output's standard deviation."""
MIN_SATURATED_PROBABILITY: Final = 0.999
"""A probability from which a change would not show."""
MAX_KEPT: Final = 4096
"""Maximum number of rows that are kept to find their columns' units."""
MAX_COLUMNS: Final = 256
"""Rows with more columns are not kept: outputs with several units have few."""
OUTERMOST_SHARE: Final = 0.2
"""The share of the smallest and of the largest values of a column that are ignored for this."""
PAIR: Final = 2
"""Minimum number of dimensions, and of classes."""


def has_rows(array: np.ndarray) -> bool:
    """Whether the last axis may be classes: floating-point numbers of at least two dimensions."""
    return array.ndim >= PAIR and PAIR <= array.shape[-1] <= MAX_CLASSES and array.dtype.kind == "f"


def best_places(scores: np.ndarray) -> np.ndarray:
    """The place of each row's highest score, over all axes but the last; NaN is never the highest."""
    rows = scores.reshape(-1, scores.shape[-1])
    places: np.ndarray = np.argmax(np.where(np.isnan(rows), -np.inf, rows), axis=1)
    return places


def count_agreeing(reference: np.ndarray, actual: np.ndarray) -> tuple[int, int]:
    """The number of rows, and in how many the highest of `actual` is that of `reference`, or ties with it."""
    rows = reference.reshape(-1, reference.shape[-1])
    every = np.arange(len(rows))
    best, found = (rows[every, best_places(scores)] for scores in (reference, actual))
    near = MAX_TIE_DIFFERENCE * np.abs(np.where(np.isfinite(best), best, 0))
    return len(rows), int((np.isnan(best) | (found >= best - near)).sum())


def _hold_several_units(rows: np.ndarray) -> bool:
    """Whether columns differ in unit. The outermost rows are ignored: one sample of large values is not a unit."""
    least, greatest = np.quantile(rows, (OUTERMOST_SHARE, 1 - OUTERMOST_SHARE), axis=0)
    return len(list(find_units(*ranges_of(np.clip(rows, least, greatest))))) > 1


def _without_masks(rows: np.ndarray) -> np.ndarray:
    """Rows of numbers, with the minimum of each instead of minus infinity, which masks a class; others are dropped."""
    masked = np.isneginf(rows)
    kept = (np.isfinite(rows) | masked).all(axis=1) & (np.isfinite(rows).sum(axis=1) >= PAIR)
    rows, masked = rows[kept], masked[kept]
    if not masked.any():
        return rows
    least = np.where(masked, np.inf, rows).min(axis=1, keepdims=True)
    return np.where(masked, least, rows)


@dataclass(slots=True)
class ScoreRows:
    """Collects properties of an output's rows. Class scores differ from an embedding, a picture or a mask in that most
    rows have a clear maximum: in those the two highest values of a row are close, and which of them is higher is
    meaningless.
    """

    leads: list[np.ndarray] = field(default_factory=list)
    spreads: list[float] = field(default_factory=list)
    """The standard deviation of each sample's rows."""
    places: set[int] = field(default_factory=set)
    rows: int = 0
    likely: bool = True
    tops: list[np.ndarray] = field(default_factory=list)
    kept: dict[int, list[np.ndarray]] = field(default_factory=dict)
    """Some rows by their number of columns, to find the columns' units."""

    def add(self, array: np.ndarray) -> None:
        """Add one sample."""
        if not has_rows(array):
            self.likely = False
            return
        rows = _without_masks(array.reshape(-1, array.shape[-1])[: max(0, MAX_ROWS - self.rows)])
        if not rows.size:
            return
        self.rows += len(rows)
        self._keep(rows)
        two = np.partition(rows, -2, axis=1)[:, -2:]
        self.leads.append(two[:, 1] - two[:, 0])
        self.spreads.append(float(rows.std()))
        self.places.update(np.unique(rows.argmax(axis=1)).tolist())
        sums = rows.sum(axis=1)
        probable = bool((rows >= 0).all() and np.abs(sums - 1).max() < 1e-3)  # noqa: PLR2004 - a softmax in half precision
        self.tops.append(two[:, 1] if probable else np.empty(0))

    def _keep(self, rows: np.ndarray) -> None:
        room = MAX_KEPT - sum(len(one) for kept in self.kept.values() for one in kept)
        if room > 0 and rows.shape[1] <= MAX_COLUMNS:
            self.kept.setdefault(rows.shape[1], []).append(rows[:room].copy())

    def look_like_scores(self, spread: float) -> bool:
        """Whether the highest place varies and most rows are decided, for an output of this standard deviation, or of
        its sample's where that is larger: among masks that are almost empty, a full one would look decided.
        """
        if not self.likely or len(self.places) < PAIR or spread <= 0:
            return False
        if any(_hold_several_units(np.concatenate(kept)) for kept in self.kept.values()):
            return False  # the highest number of a box and its scores is meaningless
        leads = [lead / max(own, spread) for lead, own in zip(self.leads, self.spreads, strict=True)]
        return float(np.median(np.concatenate(leads))) >= MIN_DECIDED_LEAD

    def saturated_share(self) -> float:
        """The share of rows of probabilities whose highest is almost 1; 0 for other rows."""
        tops = np.concatenate(self.tops) if self.tops else np.empty(0)
        return float((tops >= MIN_SATURATED_PROBABILITY).mean()) if tops.size and tops.size == self.rows else 0.0
