"""Progress as log lines, where lines cannot be redrawn: what is done, and what takes long."""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from bundler.cli.activity import Activities, Activity, show_duration
from bundler.cli.answers import forget_answer
from bundler.cli.printing import echo_lines
from bundler.model.events import BuildFinished, BuildsStarted, Event, Listener, Message, StepFinished
from bundler.model.stage import Note

HEARTBEAT = 30.0
"""Seconds after which a log tells again what is running: CI services stop silent jobs."""


@contextmanager
def open_plain() -> Iterator[Listener]:
    """A listener that writes lines to standard error, also while a step takes long."""
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
        while not stop.wait(log.beat()):
            pass


class PlainLog:
    """Writes the lines of each event; safe to call from several threads."""

    def __init__(self, write: Callable[[list[str]], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._activities = Activities()
        self._notes = NewNotes()
        self._told: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Write the log lines of `event`."""
        with self._lock:
            self._activities.observe(event, self._clock())
            self._write(self._notes.render(event))

    def beat(self) -> float:
        """Log what has been running for long since it was last told; returns seconds until the next check."""
        with self._lock:
            now, running = self._clock(), self._activities.now()
            since = {(one.build, one.text): one.since for one in running}
            self._told = {key: max(began, self._told.get(key, began)) for key, began in since.items()}
            due = [one for one in running if now - self._told[one.build, one.text] >= HEARTBEAT]
            if due:
                forget_answer()
            self._write([_still(one, show_duration(now - one.since)) for one in due])
            self._told |= {(one.build, one.text): now for one in due}
            return HEARTBEAT + min(self._told.values(), default=now) - now


class NewNotes:
    """Lets the notes through that were not printed yet: those of several bundles, most often, are the same."""

    def __init__(self) -> None:
        self._known: set[Note] = set()
        self._left: collections.Counter[str] = collections.Counter()

    def render(self, event: Event) -> list[str]:
        """The log lines of the event. That of a build's end counts its notes that were printed before."""
        return plain_lines(self.keep(event), self.count(event))

    def keep(self, event: Event) -> Event | None:
        """The event with its new notes alone; None for a message that is not new."""
        match event:
            case StepFinished():
                return replace(event, notes=tuple(note for note in event.notes if self._is_new(event.build, note)))
            case Message():
                return event if self._is_new(event.build, event.note) else None
            case _:
                return event

    def count(self, event: Event) -> int:
        """How many notes of a build that ends were printed before, for it or another."""
        return sum(self._left.pop(name, 0) for name in event.names) if isinstance(event, BuildFinished) else 0

    def _is_new(self, build: str, note: Note) -> bool:
        if note in self._known:
            self._left[build] += 1
            return False
        self._known.add(note)
        return True


def _still(activity: Activity, duration: str) -> str:
    prefix = f"{activity.build}: " if activity.build else ""
    if activity.waits:
        last = f"; last: {activity.detail}" if activity.detail else ""
        return f"{prefix}no step has run for {duration}{last}"
    share = "" if activity.share is None else f"{activity.share:.0%}"
    known = ", ".join(filter(None, (share, activity.detail)))
    return f"{prefix}{activity.text}, running for {duration}{f' ({known})' if known else ''}"


def only_safety() -> Listener:
    """A listener that writes only what is never left out: warnings that concern safety."""
    notes, lock = NewNotes(), threading.Lock()

    def listen(event: Event) -> None:
        if isinstance(event, Message) and event.note.level == "safety":
            with lock:
                _write(notes.render(event))

    return listen


def plain_lines(event: Event | None, known: int = 0) -> list[str]:
    """The log lines of `event`; a running step is shown only when it takes long."""
    match event:
        case StepFinished():
            how = "cached" if event.cached else f"{event.seconds:.2f} s"
            return [f"{event.build}: {event.title} ({how})", *_note_lines(event.build, event.notes)]
        case Message():
            return _note_lines(event.build, (event.note,))
        case BuildsStarted() if event.total > 1:
            return [f"{event.total} bundles"]
        case BuildFinished() if event.total > 1:
            how = "failed" if event.failed else "done"
            count = f"{event.done} of {event.total} bundles{_count_notes(known)}"
            return [f"{event.build}: {how} after {show_duration(event.seconds)} ({count})"]
        case _:
            return []


def _count_notes(known: int) -> str:
    return f"; {known} {'note' if known == 1 else 'notes'} as above" if known else ""


def _note_lines(build: str, notes: tuple[Note, ...]) -> list[str]:
    prefix = f"{build}: " if build else ""
    return [f"{prefix}{'' if note.level == 'info' else 'warning: '}{note.text}" for note in notes]
