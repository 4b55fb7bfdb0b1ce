"""Find columns of an output with numbers of one unit: a salary and a rating differ, as boxes and scores do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

MIN_LARGE_VALUE: Final = 2.0
"""Columns within 0 and 1 are separate from columns with values above this: scores beside coordinates."""
MIN_SPREAD_RATIO: Final = 5.0
"""Columns have different units where their sorted spreads (standard deviations) have a gap of this factor."""
MAX_QUIET_SHARE: Final = 1 / 32
"""Quiet columns below this share of many columns are not a unit of their own: they are unused."""
Ranges = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Minimum, maximum and standard deviation of each column."""


def ranges_of(rows: np.ndarray) -> Ranges:
    """The ranges of an array of rows by columns."""
    return rows.min(axis=0), rows.max(axis=0), rows.std(axis=0)


def find_units(least: np.ndarray, greatest: np.ndarray, spread: np.ndarray) -> Iterator[np.ndarray]:
    """The columns of each unit, as masks. Constant columns are in none of them, unless all are constant."""
    changing = greatest > least
    if not changing.any():
        yield np.ones(len(spread), dtype=bool)
        return
    shares = changing & (least >= 0) & (greatest <= 1)
    if shares.any() and not (np.maximum(np.abs(least), np.abs(greatest)) > MIN_LARGE_VALUE).any():
        yield changing
        return
    if shares.any():
        yield shares
    yield from _by_spread(spread, changing & ~shares)


def _by_spread(spread: np.ndarray, chosen: np.ndarray) -> Iterator[np.ndarray]:
    places = np.flatnonzero(chosen)
    ordered = places[np.argsort(-spread[places], kind="stable")]
    sizes = spread[ordered]
    ends = np.flatnonzero(sizes[:-1] > MIN_SPREAD_RATIO * sizes[1:]) + 1
    for position, group in enumerate(np.split(ordered, ends) if ordered.size else ()):
        if position == 0 or len(group) >= MAX_QUIET_SHARE * len(spread):
            mask = np.zeros(len(spread), dtype=bool)
            mask[group] = True
            yield mask
