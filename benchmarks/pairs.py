"""Two things measured in turns, so that a busy machine is unfair to neither; what counts is the ratio within a pair."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bars import show_verdict

Measure = Callable[[], float]
"""Does the work once and answers the seconds that it took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Seconds; `ours[i]` and `theirs[i]` were taken one after the other."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """Ours over theirs, pair by pair."""
        return tuple(our / their for our, their in zip(self.ours, self.theirs, strict=True))

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return statistics.median(self.ratios)

    @property
    def ratio_of_minima(self) -> float:
        """The fastest of ours over the fastest of theirs: the least disturbed ones."""
        return min(self.ours) / min(self.theirs)


def alternate(ours: Measure, theirs: Measure, count: int, *, warm_up: int = 1) -> Pairs:
    """Measure `count` pairs; which goes first changes from pair to pair. `warm_up` pairs before them do not count."""
    found: list[tuple[float, float]] = []
    for turn in range(count + warm_up):
        if turn % 2:
            second = theirs()
            pair = ours(), second
        else:
            pair = ours(), theirs()
        if turn >= warm_up:
            found.append(pair)
    return Pairs(ours=tuple(pair[0] for pair in found), theirs=tuple(pair[1] for pair in found))


def show_seconds(values: Sequence[float]) -> str:
    """Median and, in brackets, the least and the greatest: `12.3 ms (11.9…15.0)`."""
    middle = statistics.median(values)
    scale, unit = (1000, "ms") if middle < 1 else (1, "s")
    least, greatest = min(values) * scale, max(values) * scale
    return f"{show_number(middle * scale)} {unit} ({show_number(least)}…{show_number(greatest)})"


def show_ratio(pairs: Pairs) -> str:
    """Median of the paired ratios with the least and the greatest."""
    return f"{pairs.ratio:.2f} ({min(pairs.ratios):.2f}…{max(pairs.ratios):.2f})"


def show_number(value: float) -> str:
    """Three significant digits, and never an exponent."""
    if abs(value) >= 100:  # noqa: PLR2004 - from here on three digits stand before the point
        return f"{value:.0f}"
    return f"{value:.3g}"


def judge(value: float, bar: float) -> str:
    """Whether `value` is at most `bar`, as a table says it."""
    return show_verdict(met=value <= bar)
