"""Renderers of progress events: a live display on a terminal, plain lines in CI, JSON lines for programs.

Everything goes to standard error; standard output belongs to a command's result.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from bundler.model.codec import encode
from bundler.model.events import Event, Listener, Message, StepFinished, StepProgress, StepStarted, ignore
from bundler.model.stage import Note

ProgressStyle = Literal["auto", "rich", "plain", "json", "none"]


@contextmanager
def open_console(style: ProgressStyle) -> Iterator[Listener]:
    """A listener that renders events in `style`; `auto` is live on a terminal and plain elsewhere."""
    chosen = _choose(style)
    if chosen == "none":
        yield ignore
    elif chosen == "json":
        yield _locked(_print_json)
    elif chosen == "rich":
        from bundler.cli.live import open_live  # noqa: PLC0415 - rich only where it is shown

        with open_live() as listener:
            yield listener
    else:
        yield _locked(_print_plain)


def _choose(style: ProgressStyle) -> ProgressStyle:
    if style != "auto":
        return style
    live = sys.stderr.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"
    return "rich" if live else "plain"


def _locked(render: Listener) -> Listener:
    lock = threading.Lock()

    def listener(event: Event) -> None:
        with lock:
            render(event)

    return listener


def _print_json(event: Event) -> None:
    line = {"event": type(event).__name__, **encode(event)}
    sys.stderr.write(json.dumps(line) + "\n")
    sys.stderr.flush()


def _print_plain(event: Event) -> None:
    for line in plain_lines(event):
        sys.stderr.write(line + "\n")
    sys.stderr.flush()


def plain_lines(event: Event) -> list[str]:
    """The lines that a log shows for `event`. Starts and fractions are not shown: a log wants what is done."""
    match event:
        case StepFinished():
            how = "cached" if event.cached else f"{event.seconds:.2f} s"
            return [f"{event.build}: {event.title} ({how})", *_note_lines(event.build, event.notes)]
        case Message():
            return _note_lines(event.build, (event.note,))
        case StepStarted() | StepProgress():
            return []


def _note_lines(build: str, notes: tuple[Note, ...]) -> list[str]:
    prefix = f"{build}: " if build else ""
    return [f"{prefix}{'warning: ' if note.level == 'warning' else ''}{note.text}" for note in notes]
