"""Renderers of progress events: a live display on a terminal, plain lines in CI, JSON lines for programs.

Everything goes to standard error; standard output belongs to a command's result.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bundler.cli.answers import forget_answer
from bundler.cli.printing import echo, echo_document, render_json
from bundler.model.codec import encode
from bundler.model.errors import UsageError
from bundler.model.events import Event, Listener, Message, StepFinished
from bundler.model.stage import Note

STYLES = ("auto", "rich", "plain", "json", "none")


@contextmanager
def open_console(style: str, *, as_json: bool = False) -> Iterator[Listener]:
    """A listener that renders events in `style`; `auto` is live on a terminal and plain elsewhere, and with `as_json`,
    where a program reads the result, everywhere. `none` still shows warnings of safety. Raises `UsageError` for an
    unknown style.
    """
    chosen = _choose(style, as_json=as_json)
    if chosen == "none":
        from bundler.cli.plain import only_safety  # noqa: PLC0415 - as below

        yield only_safety()
    elif chosen == "json":
        forget_answer()  # it tells how long each build took
        yield _locked(_print_json)
    elif chosen == "rich":
        from bundler.cli.live import open_live  # noqa: PLC0415 - rich only where it is shown

        with open_live() as listener:
            yield listener
    else:
        from bundler.cli.plain import open_plain  # noqa: PLC0415 - as above

        with open_plain() as listener:
            yield listener


@contextmanager
def open_quiet() -> Iterator[Listener]:
    """A listener that shows warnings of safety alone, and in the end says how many others there were."""
    with open_console("none") as listener:
        hidden: set[Note] = set()

        def listen(event: Event) -> None:
            notes = event.notes if isinstance(event, StepFinished) else ()
            notes = (event.note,) if isinstance(event, Message) else notes
            hidden.update(note for note in notes if note.level == "warning")
            listener(event)

        yield listen
    if hidden:
        many, them = (f"{len(hidden)} warnings are", "them") if len(hidden) > 1 else ("1 warning is", "it")
        echo(f"{many} not shown: build without --quiet to read {them}", err=True)


def _choose(style: str, *, as_json: bool) -> str:
    if style not in STYLES:
        raise UsageError(f"--progress {style}: unknown style", hint=f"one of {', '.join(STYLES)}")
    if style != "auto":
        return style
    live = sys.stderr.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"
    return "rich" if live and not as_json else "plain"


def _locked(render: Listener) -> Listener:
    lock = threading.Lock()

    def listener(event: Event) -> None:
        with lock:
            render(event)

    return listener


def _print_json(event: Event) -> None:
    echo_document(render_json({"event": type(event).__name__, **encode(event)}), err=True)
