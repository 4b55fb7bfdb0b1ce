"""Progress as log lines, where lines cannot be redrawn: what starts, what is done, and what takes long."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bundler.cli.activity import Activities, Activity, place_step, show_duration
from bundler.cli.answers import forget_answer
from bundler.cli.printing import echo_lines
from bundler.model.events import BuildFinished, BuildsStarted, Event, Listener, Message, StepFinished, StepStarted
from bundler.model.stage import Note

SILENCE = 30.0
"""Seconds without output after which a log says what is running: CI services stop silent jobs."""


@contextmanager
def open_plain() -> Iterator[Listener]:
    """A listener that writes lines to standard error, also after a long silence."""
    log = PlainLog(_write)
    stop = threading.Event()
    thread = threading.Thread(target=_keep_awake, args=(log, stop), daemon=True)
    thread.start()
    try:
        yield log
    finally:
        stop.set()
        thread.join()


def _write(lines: list[str]) -> None:
    echo_lines(lines, err=True)


def _keep_awake(log: PlainLog, stop: threading.Event) -> None:
    with contextlib.suppress(OSError, ValueError):  # the reader closed the pipe: the next event notices
        while not stop.wait(log.break_silence()):
            pass


class PlainLog:
    """Writes the lines of each event; safe to call from several threads."""

    def __init__(self, write: Callable[[list[str]], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._activities = Activities()
        self._lock = threading.Lock()
        self._last = clock()

    def __call__(self, event: Event) -> None:
        """Write the log lines of `event`."""
        with self._lock:
            self._activities.observe(event, self._clock())
            self._say(plain_lines(event))

    def break_silence(self) -> float:
        """Log what is running after a long silence; returns seconds until the next check."""
        with self._lock:
            left = self._last + SILENCE - self._clock()
            if left > 0:
                return left
            forget_answer()
            self._say(list(self._describe()))
            self._last = self._clock()
            return SILENCE

    def _say(self, lines: list[str]) -> None:
        if lines:
            self._last = self._clock()
        self._write(lines)

    def _describe(self) -> Iterator[str]:
        now = self._clock()
        for activity in self._activities.now():
            yield _still(activity, show_duration(now - activity.since))
        if self._activities.total > 1:
            yield f"{self._activities.done} of {self._activities.total} bundles are done"


def _still(activity: Activity, duration: str) -> str:
    prefix = f"{activity.build}: " if activity.build else ""
    if activity.waits:
        last = f"; last: {activity.detail}" if activity.detail else ""
        return f"{prefix}no step has run for {duration}{last}"
    share = "" if activity.share is None else f"{activity.share:.0%}"
    known = ", ".join(filter(None, (share, activity.detail)))
    return f"{prefix}{activity.text}, running for {duration}{f' ({known})' if known else ''}"


def plain_lines(event: Event) -> list[str]:
    """The log lines of `event`; a step's progress is shown only when it takes long."""
    match event:
        case StepStarted():
            return [f"{event.build}: {place_step(event)}"]
        case StepFinished():
            how = "cached" if event.cached else f"{event.seconds:.2f} s"
            return [f"{event.build}: {event.title} ({how})", *_note_lines(event.build, event.notes)]
        case Message():
            return _note_lines(event.build, (event.note,))
        case BuildsStarted() if event.total > 1:
            return [f"{event.total} bundles"]
        case BuildFinished() if event.total > 1:
            how = "failed" if event.failed else "done"
            count = f"{event.done} of {event.total} bundles"
            return [f"{event.build}: {how} after {show_duration(event.seconds)} ({count})"]
        case _:
            return []


def _note_lines(build: str, notes: tuple[Note, ...]) -> list[str]:
    prefix = f"{build}: " if build else ""
    return [f"{prefix}{'warning: ' if note.level == 'warning' else ''}{note.text}" for note in notes]
