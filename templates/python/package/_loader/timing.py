"""How long the model takes: to open, to the first answer, and in a steady loop."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

Call = Callable[[], object]
Open = Callable[[], Call]
"""Opens a model and returns a call of it on fixed inputs."""

OPENINGS = 5
"""Openings of which the median counts."""


class Timing:
    """Seconds. `first_answer` counts from the start of the opening; latency is that of one call in a steady loop."""

    def __init__(self, openings: list[float], firsts: list[float], latencies: list[float]) -> None:
        self.opening = find_quantile(openings, 0.5)
        self.first_answer = find_quantile(firsts, 0.5)
        self.latency_median = find_quantile(latencies, 0.5)
        self.latency_p10 = find_quantile(latencies, 0.1)
        self.latency_p90 = find_quantile(latencies, 0.9)
        self._series = {"first_answer_seconds": firsts, "latency_seconds": latencies}

    def to_json(self) -> dict[str, float]:
        """All figures by name, in seconds."""
        return {f"{name}_seconds": value for name, value in vars(self).items() if name != "_series"}

    def series(self) -> dict[str, list[float]]:
        """Every single time behind the figures, in seconds."""
        return self._series


def find_quantile(values: list[float], share: float) -> float:
    """The value below which `share` of `values` lie, interpolated; not a number when there are none."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def time_side_by_side(opens: list[Open], *, runs: int, warm_up: int, limit: float = float("inf")) -> list[Timing]:
    """Time several models in turns, so that a busy machine is unfair to none of them.

    After about `limit` seconds it makes do with what it has: at least one opening and one call of each.
    """
    start = time.perf_counter()
    measured = [_Measurement(open_) for open_ in opens]
    _repeat([one.open for one in measured], OPENINGS, start + limit / 3)
    _repeat([one.call for one in measured], warm_up, start + limit / 3)
    block = max(1, runs // 10)
    for done in range(0, runs, block):
        for one in measured:
            one.run(min(block, runs - done), start + limit)
        if time.perf_counter() > start + limit:
            break
    return [one.finish() for one in measured]


def _repeat(calls: list[Call], times: int, until: float) -> None:
    """One of each in turn, `times` times over; no new turn is begun after `until`."""
    for turn in range(times):
        if turn and time.perf_counter() > until:
            return
        for call in calls:
            call()


class _Measurement:
    def __init__(self, open_: Open) -> None:
        self._open = open_
        self.call: Call = open_
        self._openings: list[float] = []
        self._firsts: list[float] = []
        self._latencies: list[float] = []

    def open(self) -> None:
        gc.collect()
        start = time.perf_counter()
        self.call = self._open()
        opened = time.perf_counter()
        self.call()
        self._openings.append(opened - start)
        self._firsts.append(time.perf_counter() - start)

    def run(self, times: int, until: float) -> None:
        self.call()  # The other model's turn has cooled the caches.
        for _ in range(times):
            start = time.perf_counter()
            self.call()
            end = time.perf_counter()
            self._latencies.append(end - start)
            if end > until:
                return

    def finish(self) -> Timing:
        return Timing(self._openings, self._firsts, self._latencies)


def summarise(figures: dict[str, float]) -> list[str]:
    """The figures as lines for a person."""
    return [
        f"  {name.removesuffix('_seconds').replace('_', ' '):<16}{show_time(value)}" for name, value in figures.items()
    ]


def show_time(seconds: Any) -> str:
    """`1.24 ms`."""
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
