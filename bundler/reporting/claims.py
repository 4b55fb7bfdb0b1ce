"""Decides whether a difference in speed may be reported: enough runs, ranges that do not overlap, an idle machine."""

from __future__ import annotations

import os
from typing import Final

from bundler.model.measurement import Measurement
from bundler.reporting.data import Spread, summarize_series
from bundler.support.text import count_things

LEAST_RUNS: Final = 7
"""Runs of each side below which no difference is reported. Two equal series of seven runs are completely separated in 2
of 3,432 orders; between their 10th and 90th percentiles in fewer than 1 of 100."""

NOISE: Final = 0.03
"""Medians closer than this share are reported as equal: runs of one program differ by as much on an idle machine."""

BUSY: Final = 0.2
"""Largest share of the machine's processors that other programs may keep busy. Above it, two equal sessions were
measured up to 48 % apart."""

UNSTEADY: Final = 1.5
"""Ratio of the 90th to the 10th percentile of a series above which its median says little about a single call: two
equal sessions on a busy machine differed as much (`BUSY`)."""

TOO_FEW: Final = "too few runs"
NO_DIFFERENCE: Final = "no difference shown"
TOO_BUSY: Final = "no difference shown, the machine was busy"


def compare_medians(before: Spread | None, after: Spread | None, others: float | None = None) -> tuple[str, str]:
    """The verdict on the change from `before` to `after`, and its tone (`good`, `bad`, `plain`).

    `others` is the share of the processors that other programs kept busy meanwhile; None when unknown.
    """
    if before is None or after is None or before.median <= 0 or after.median <= 0:
        return "", "plain"
    doubt = find_doubt(before, after, others)
    if doubt:
        return doubt, "plain"
    ratio = before.median / after.median
    if abs(after.median / before.median - 1) <= NOISE:
        return "as fast as before", "plain"
    if ratio > 1:
        return f"{ratio:.2g} times faster", "good"
    return f"{1 / ratio:.2g} times slower", "bad"


def find_doubt(before: Spread, after: Spread, others: float | None = None) -> str:
    """Why the medians of two series must not be compared; empty when they may be."""
    if min(before.count, after.count) < LEAST_RUNS:
        return TOO_FEW
    if others is not None and others > BUSY:
        return TOO_BUSY
    return NO_DIFFERENCE if after.low <= before.high and before.low <= after.high else ""


def doubt_ratio(low: float | None, high: float | None, rounds: int | None) -> str:
    """The same for a ratio measured round by round: `low` and `high` are its 10th and 90th percentile."""
    if low is None or high is None or rounds is None:
        return ""
    if rounds < LEAST_RUNS:
        return TOO_FEW
    return NO_DIFFERENCE if low <= 1 <= high else ""


def doubt_measurement(measurement: Measurement) -> tuple[str, ...]:
    """Why the figures of one variant are unreliable, a sentence each: few runs, a busy machine, varying calls."""
    series = (("load", measurement.opening_ms), ("call", measurement.latency_ms))
    doubts = [
        f"only {count_things(len(found), f'timed {what}')} (at least {LEAST_RUNS} are needed)"
        for what, found in series
        if 0 < len(found) < LEAST_RUNS
    ]
    if measurement.others is not None and measurement.others > BUSY:
        doubts.append(f"other programs kept {measurement.others:.0%} of the processors busy meanwhile")
    calls = summarize_series(measurement.latency_ms)
    if calls is not None and calls.count >= LEAST_RUNS and calls.high > UNSTEADY * calls.low:
        doubts.append(f"calls differ: one in ten took {calls.high / calls.low:.2g} times as long as the quickest tenth")
    return tuple(doubts)


def doubt_machine() -> str:
    """Why nothing should be timed on this machine now; empty when it seems idle or has no load average.

    Uses the load average of the last minute, in runnable programs.
    """
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):
        return ""
    processors = os.cpu_count() or 1
    if load <= BUSY * processors:
        return ""
    return f"the load average was {load:.1f} on {processors} processors before anything was timed"
