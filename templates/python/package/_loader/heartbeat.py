"""Prints progress of a long operation to standard error, also while the runtime compiles without any output."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, Self

PAUSE = 15.0
"""Seconds between two messages."""


class Heartbeat:
    """Prints the progress given to `tell`, and repeats it at intervals."""

    def __init__(self) -> None:
        self._text = ""
        self._start = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def tell(self, share: float, text: str) -> None:
        """Print the share that is done (from 0 to 1), and what comes next."""
        self._text = text
        print(f"prewarm {share:4.0%}: {text}", file=sys.stderr, flush=True)

    def _beat(self) -> None:
        while not self._ended.wait(PAUSE):
            seconds = time.monotonic() - self._start
            print(f"prewarm: still {self._text or 'working'} after {seconds:.0f} s", file=sys.stderr, flush=True)


def print_prewarmed(outcomes: list[dict[str, Any]]) -> None:
    """Print the outcomes as text."""
    for outcome in outcomes:
        reason = f": {outcome['reason']}" if outcome["reason"] else ""
        print(f"{outcome['variant']}: {outcome['status']}{reason} ({outcome['seconds']:.1f} s)")
        for provider, count in outcome.get("nodes", {}).items():
            print(f"  {count} nodes assigned to {provider}")
