"""Figures with their limits ("bars") as data: a cell of a table shows one, and the history keeps it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """`median` is to be at most `limit`, or at least where `at_least` says so. `name` is "what: subject" or "subject",
    and stays the same from run to run; `unit` is "times" for ratios, else "s" or another. `said` stands before the
    verdict in a table's cell.
    """

    name: str
    median: float
    least: float
    greatest: float
    limit: float
    unit: str = "times"
    at_least: bool = False
    said: str = ""

    @property
    def met(self) -> bool:
        """Whether the median is on the right side of its limit, or on it."""
        return self.median >= self.limit if self.at_least else self.median <= self.limit

    def __str__(self) -> str:
        return f"{self.said}{show_verdict(met=self.met)}"


def set_bar(
    name: str, values: Sequence[float], limit: float, *, unit: str = "times", at_least: bool = False, said: str = ""
) -> Bar:
    """A bar over what was measured again and again: the ratios of pairs, or figures in `unit`."""
    return Bar(
        name=name,
        median=statistics.median(values),
        least=min(values),
        greatest=max(values),
        limit=limit,
        unit=unit,
        at_least=at_least,
        said=said,
    )


def show_verdict(*, met: bool) -> str:
    """As a table says it."""
    return "met" if met else "**missed**"
