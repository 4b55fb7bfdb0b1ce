"""The journal of a build: JSON lines, one event each, flushed at once, so that it is valid up to an interruption."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from pathlib import Path
from typing import Any

KEPT = 50
"""Journals that are kept; older ones are removed when a new one begins."""


class Journal:
    """Appends to one file. Failures are ignored: a journal must never fail a build."""

    def __init__(self, root: Path, build: str, name: str) -> None:
        self.path = root / "journal" / f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{name}.jsonl"
        self._lock = threading.Lock()
        self._start = time.monotonic()
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _remove_old(self.path.parent)
        self.write("build", build=build, at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))

    def write(self, event: str, **values: Any) -> None:
        """Add one event; `t` is seconds since the journal began."""
        line = json.dumps({"event": event, "t": round(time.monotonic() - self._start, 4), **values}) + "\n"
        with self._lock, contextlib.suppress(OSError), self.path.open("a", encoding="utf-8") as stream:
            stream.write(line)


def _remove_old(folder: Path) -> None:
    for path in sorted(folder.glob("*.jsonl"))[: -KEPT + 1]:
        path.unlink(missing_ok=True)
