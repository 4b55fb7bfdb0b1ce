"""When a difference in speed may be claimed: enough runs, apart from each other, on a machine that did little else."""

from __future__ import annotations

import os
from typing import Final

from bundler.model.measurement import Measurement
from bundler.reporting.data import Spread, summarize_series

LEAST_RUNS: Final = 7
"""Runs of each side below which nothing is claimed. Of two series of seven in random order 2 in 3,432 lie wholly apart;
with a tenth cut off at both ends it is still fewer than 1 in 100."""

NOISE: Final = 0.03
"""Medians closer than this share are called equal: runs of one program differ by as much on a quiet machine."""

BUSY: Final = 0.2
"""Share of the machine's processors that other programs may keep busy. On busier ones two equal sessions were measured
up to 48 % apart."""

UNSTEADY: Final = 1.5
"""Ratio of the 90th to the 10th percentile of one series from which on its median says little of a single call: two
equal sessions on a busy machine were as far apart (`BUSY`)."""

TOO_FEW: Final = "too few runs"
NO_DIFFERENCE: Final = "no difference shown"
TOO_BUSY: Final = "no difference shown, the machine was busy"


def compare_medians(before: Spread | None, after: Spread | None, others: float | None = None) -> tuple[str, str]:
    """What changed from `before` to `after` in words, and its tone (`good`, `bad`, `plain`).

    `others` is the share of the processors that other programs kept busy meanwhile; None where that is not known.
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
    """Why the medians of two series must not be compared; empty where they may."""
    if min(before.count, after.count) < LEAST_RUNS:
        return TOO_FEW
    if others is not None and others > BUSY:
        return TOO_BUSY
    return NO_DIFFERENCE if after.low <= before.high and before.low <= after.high else ""


def doubt_ratio(low: float | None, high: float | None, rounds: int | None) -> str:
    """The same of a ratio that was taken round by round: `low` and `high` are its 10th and 90th percentile."""
    if low is None or high is None or rounds is None:
        return ""
    if rounds < LEAST_RUNS:
        return TOO_FEW
    return NO_DIFFERENCE if low <= 1 <= high else ""


def doubt_measurement(measurement: Measurement) -> tuple[str, ...]:
    """Why the figures of one variant may not be what they seem, a sentence each: few runs, a busy machine, calls that
    differ.
    """
    series = (("opening", measurement.opening_ms), ("call", measurement.latency_ms))
    doubts = [
        f"{len(found)} timed {what}{'' if len(found) == 1 else 's'}, and fewer than {LEAST_RUNS} show little"
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
    """Why nothing should be timed on this machine now; empty where nothing is known against it.

    The load average of the last minute, in runnable programs; where a system does not tell it, nothing is said.
    """
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):
        return ""
    processors = os.cpu_count() or 1
    if load <= BUSY * processors:
        return ""
    return f"the load average was {load:.1f} on {processors} processors before anything was timed"
