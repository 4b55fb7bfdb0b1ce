"""Counts the finished builds of a call."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bundler.model.events import BuildFinished, BuildsStarted, Event, Listener


class Followed:
    """A listener of one build, which remembers the names that the build reports; the caller sets `failed`."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.names: dict[str, None] = {}
        self.failed = False

    def __call__(self, event: Event) -> None:
        """Pass one event on."""
        if not isinstance(event, BuildsStarted):
            self.names[event.build] = None
        self._listener(event)


class Count:
    """Reports each build that ends; several may run at once."""

    def __init__(self, *, total: int, listener: Listener) -> None:
        self._total, self._listener = total, listener
        self._done = 0
        self._lock = threading.Lock()

    @contextmanager
    def follow(self, build: str) -> Iterator[Followed]:
        """One build, which ends with the block."""
        followed = Followed(self._listener)
        began = time.perf_counter()
        yield followed
        with self._lock:
            self._done += 1
            self._listener(
                BuildFinished(
                    build=build,
                    names=tuple(followed.names),
                    failed=followed.failed,
                    seconds=time.perf_counter() - began,
                    done=self._done,
                    total=self._total,
                )
            )
