"""Measures how busy other programs keep this machine while a bundle is timed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_STAT = Path("/proc/stat")
_FIELDS = 8
"""Sums of the kernel, from `user` to `steal`; what comes after them is among them already."""

_IDLE = (3, 4)
"""Places of idle time and of waiting for a disk among the kernel's sums."""


class LoadWatch:
    """Counts from its creation on. Own processes count after they have ended and were waited for."""

    def __init__(self) -> None:
        self._began = _read()

    def others(self) -> float | None:
        """The share of all processors that others used; None where the system does not report it."""
        ended = _read()
        if self._began is None or ended is None:
            return None
        total, busy, own = (last - first for first, last in zip(self._began, ended, strict=True))
        return min(1.0, max(0.0, (busy - own) / total)) if total > 0 else None


def _read() -> tuple[float, float, float] | None:
    """Seconds of all processors, of those the busy ones, and of those the ones of our processes that have ended."""
    if sys.platform != "linux":
        return None
    try:
        values = [int(text) for text in _STAT.read_text("ascii").split("\n", 1)[0].split()[1 : 1 + _FIELDS]]
    except (OSError, ValueError):
        return None
    if len(values) < _FIELDS:
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    times = os.times()
    idle = sum(values[place] for place in _IDLE)
    return sum(values) / ticks, (sum(values) - idle) / ticks, times.children_user + times.children_system
