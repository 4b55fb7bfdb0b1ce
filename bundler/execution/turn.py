"""When a step has its turn: how long it runs, and who is told that it began."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Turn:
    """Measures the run time of a step, from when it has a worker: waiting for a core, for another process with the same
    key, or for its environment does not count. Calls `announce` when the step begins; a step that nobody has asked for
    yet has none, until `claim`.
    """

    announce: Callable[[], None] | None = None
    _began: float | None = None
    _ended: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """Start the measurement."""
        with self._lock:
            self._began = time.perf_counter()
            announce = self.announce
        if announce is not None:
            announce()

    def claim(self, announce: Callable[[], None]) -> None:
        """Announce the step now if it has begun, else when it does."""
        with self._lock:
            self.announce, begun = announce, self._began is not None
        if begun:
            announce()

    def end(self) -> None:
        """End the measurement."""
        self._ended = time.perf_counter()

    @property
    def seconds(self) -> float | None:
        """The run time so far; None if the step did not run."""
        return None if self._began is None else (self._ended or time.perf_counter()) - self._began
