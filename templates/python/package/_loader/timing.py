"""Measure load time, first inference, and latency in a steady loop."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

Call = Callable[[], object]
Open = Callable[[], Call]
"""Opens a model and returns a call of it on fixed inputs."""

MOST_AT_ONCE = 20
"""Consecutive calls of one model before the next model runs."""

TURNS = 20
"""The maximum share of the total time for one turn, so that each model is measured."""

FEW_OPENINGS = 2
"""Load times measured of a model that loads slowly."""

SETTLE_SECONDS = 0.05
"""A pause between models: threads of the runtime spin for up to 40 ms after a call or a load, and slow the next."""


class Limits:
    """How much to measure: loads, calls in a steady loop, warm-up calls, and about how many seconds in all."""

    __slots__ = ("openings", "runs", "seconds", "warm_up")

    def __init__(self, *, openings: int, runs: int, warm_up: int, seconds: float) -> None:
        self.openings = openings
        self.runs = runs
        self.warm_up = warm_up
        self.seconds = seconds


class Timing:
    """Seconds. `first_answer` is measured from the start of loading; latency is that of one call in a steady loop."""

    def __init__(self, openings: list[float], firsts: list[float], latencies: list[float]) -> None:
        self.openings = openings
        self.firsts = firsts
        self.latencies = latencies

    def to_json(self) -> dict[str, float]:
        """All figures by name, in seconds."""
        figures = {"opening": find_quantile(self.openings, 0.5), "first_answer": find_quantile(self.firsts, 0.5)}
        shares = {"median": 0.5, "p10": 0.1, "p90": 0.9}
        figures.update({f"latency_{name}": find_quantile(self.latencies, share) for name, share in shares.items()})
        return {f"{name}_seconds": value for name, value in figures.items()}

    def series(self) -> dict[str, list[float]]:
        """All single measurements, in seconds."""
        return {
            "opening_seconds": self.openings,
            "first_answer_seconds": self.firsts,
            "latency_seconds": self.latencies,
        }


def find_quantile(values: list[float], share: float) -> float:
    """The quantile `share` of `values`, interpolated; NaN without values."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def time_side_by_side(opens: list[Open], limits: Limits) -> list[Timing]:
    """Measure several models in turns, so that other load on the machine affects all of them alike.

    When the seconds are over, it returns what was measured: at least one load and one call of each.
    """
    start = time.perf_counter()
    measured = [_Measurement(open_) for open_ in opens]
    pause = SETTLE_SECONDS if len(measured) > 1 else 0.0
    _repeat([one.open for one in measured], limits.openings, start + limits.seconds / 2, pause)
    _repeat([one.call for one in measured], limits.warm_up, start + limits.seconds * 2 / 3)
    block = min(MOST_AT_ONCE, max(1, limits.runs // 10))
    for done in range(0, limits.runs, block):
        for one in measured:
            time.sleep(pause)
            one.run(min(block, limits.runs - done), time.perf_counter() + limits.seconds / TURNS)
        if time.perf_counter() > start + limits.seconds:
            break
    return [one.finish() for one in measured]


def time_one_by_one(opens: list[Open], limits: Limits) -> list[Timing]:
    """The same for large models: only one of them is in memory at a time."""
    openings, seconds = min(limits.openings, FEW_OPENINGS), limits.seconds / len(opens)
    each = Limits(openings=openings, runs=limits.runs, warm_up=min(limits.warm_up, 1), seconds=seconds)
    return [time_side_by_side([open_], each)[0] for open_ in opens]


def _repeat(calls: list[Call], times: int, until: float, pause: float = 0.0) -> None:
    """One of each in turn, `times` times, with a pause before each; no new turn starts after `until`."""
    for turn in range(times):
        if turn and time.perf_counter() > until:
            return
        for call in calls:
            time.sleep(pause)
            call()


class _Measurement:
    def __init__(self, open_: Open) -> None:
        self._open = open_
        self.call: Call = open_
        self._openings: list[float] = []
        self._firsts: list[float] = []
        self._latencies: list[float] = []

    def open(self) -> None:
        self.call = self._open  # Releases the model that was open.
        gc.collect()
        start = time.perf_counter()
        self.call = self._open()
        opened = time.perf_counter()
        self.call()
        self._openings.append(opened - start)
        self._firsts.append(time.perf_counter() - start)

    def run(self, times: int, until: float) -> None:
        self.call()  # The other model has evicted this one from the caches.
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
    """The figures as lines of text."""
    return [
        f"  {name.removesuffix('_seconds').replace('_', ' '):<16}{show_time(value)}" for name, value in figures.items()
    ]


def show_time(seconds: Any) -> str:
    """`1.24 ms`."""
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
