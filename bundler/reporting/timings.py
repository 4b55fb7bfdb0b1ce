"""Reads a build's measurements from `timings.json` in the report beside a bundle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bundler.model.codec import parse_json
from bundler.model.confinement import find_inside
from bundler.model.paths import real_path
from bundler.model.runtime import SOLE
from bundler.reporting.data import Spread

TIMINGS_NAME = "timings.json"
LARGEST = 50_000_000
"""Largest size in bytes of such a file; a variant has about 100,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Steady-state latency of one variant at build time, and of a default session on the original model, timed in turn
    with it; in milliseconds. `others` is the share of the processors that other programs kept busy, if known.
    """

    latency: Spread
    baseline: Spread
    others: float | None


def report_folder(bundle: Path) -> Path:
    """The report's folder beside `bundle`: outside the bundle, because it contains what varies from run to run."""
    return bundle.with_name(f"{bundle.name}.report")


Timings = Mapping[tuple[str, str], Timed]
"""By component and variant."""


def read_timings(bundle: Path) -> Timings:
    """The timings of a build; empty without a valid report."""
    try:
        path = find_inside(report_folder(real_path(bundle)), TIMINGS_NAME)
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        data: Any = parse_json(content) if len(content) <= LARGEST else None
        found = [_read_measurement(item) for item in data["measurements"]]
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    return dict(pair for pair in found if pair is not None)


def _read_measurement(item: Mapping[str, Any]) -> tuple[tuple[str, str], Timed] | None:
    latency, baseline = (_read_spread(item[name]["spread"]) for name in ("latency_ms", "baseline_latency_ms"))
    others = item.get("others")
    if latency is None or baseline is None:
        return None
    known = float(others) if isinstance(others, (int, float)) else None
    names = str(item.get("component", SOLE)), str(item["variant"])
    return names, Timed(latency=latency, baseline=baseline, others=known)


def _read_spread(data: Any) -> Spread | None:
    """None where nothing was timed, or a figure is not a valid time."""
    if not isinstance(data, Mapping):
        return None
    median, low, high, count = (float(data[name]) for name in ("median", "low", "high", "count"))
    if not all(math.isfinite(value) and value > 0 for value in (median, low, high, count)):
        return None
    return Spread(median=median, low=low, high=high, count=int(count))
