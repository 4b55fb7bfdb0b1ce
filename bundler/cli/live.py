"""The live display on a terminal, drawn by rich. Text is never parsed as rich markup: it may come from models."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column
from rich.text import Text

from bundler.cli.activity import Activities, Activity
from bundler.cli.answers import note_printed
from bundler.cli.plain import NewNotes, plain_lines
from bundler.cli.printing import LONGEST_LINE, printable
from bundler.model.events import BuildFinished, Event, Listener, Message, StepFinished
from bundler.model.stage import Note

BUILDS = "builds"
"""The key of the line that counts builds."""

WIDE = 100
"""Least terminal width in columns for a progress bar of width `BAR`."""
BAR = 20

LABEL = 60
"""Columns for a build's name and step; the step's own message gets the rest, at least `MINIMUM`."""
MINIMUM = 12


@contextmanager
def open_live() -> Iterator[Listener]:
    """A listener with one spinner for each running step and one line for each finished one."""
    console = Console(stderr=True, highlight=False)
    one_line = Column(no_wrap=True, overflow="ellipsis")
    bar = (BarColumn(bar_width=BAR),) if console.width >= WIDE else ()
    columns = (
        SpinnerColumn(),
        _LabelColumn(table_column=one_line),
        *bar,
        TextColumn("{task.fields[text]}", markup=False, table_column=copy(one_line)),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield LiveListener(progress)


class LiveListener:
    """Turns events into tasks of a `rich` progress display: one for each activity, and one that counts several
    builds.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._lines = _copy_console(progress.console)
        self._activities = Activities()
        self._notes = NewNotes()
        self._tasks: dict[tuple[str, str], TaskID] = {}
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Render one event."""
        with self._lock:
            self._activities.observe(event, time.monotonic())
            self._draw()
            self._print(self._notes.keep(event))

    def _draw(self) -> None:
        activities = {(activity.build, activity.text): activity for activity in self._activities.now()}
        for key in [key for key in self._tasks if key not in activities and key[0] != BUILDS]:
            self._progress.remove_task(self._tasks.pop(key))
        for key, activity in activities.items():
            if key not in self._tasks:
                self._tasks[key] = self._progress.add_task(
                    f"{activity.build} {activity.text}", total=None, text="", style="dim" if activity.waits else ""
                )
            self._show(self._tasks[key], activity)
        self._count()

    def _show(self, task: TaskID, activity: Activity) -> None:
        known = None if activity.share is None else 1.0
        share = "" if activity.share is None else f"{activity.share:.0%}"
        room = max(MINIMUM, self._progress.console.width - LABEL - BAR)
        text = " ".join(filter(None, (share, activity.detail)))
        self._progress.update(task, total=known, completed=activity.share or 0.0, text=printable(text, room))

    def _count(self) -> None:
        done, total = self._activities.done, self._activities.total
        if total <= 1:
            return
        key = (BUILDS, "")
        if key not in self._tasks:
            self._tasks[key] = self._progress.add_task("bundles", total=total, text="", style="bold")
        self._progress.update(self._tasks[key], completed=done, text=f"{done} of {total}")

    def _print(self, event: Event | None) -> None:
        match event:
            case StepFinished():
                how = ("cached", "cyan") if event.cached else (f"{event.seconds:.2f} s", "")
                self._write("✓", "green", f"{event.build} {event.title}", (" (", "dim"), how, (")", "dim"))
                for note in event.notes:
                    self._say(event.build, note)
            case Message():
                self._say(event.build, event.note)
            case BuildFinished():
                for line in plain_lines(event, self._notes.count(event)):
                    self._write(*(("✗", "red") if event.failed else ("✓", "green")), line)

    def _say(self, build: str, note: Note) -> None:
        self._write(*(("·", "dim") if note.level == "info" else ("!", "yellow")), f"{build} {note.text}".lstrip())

    def _write(self, mark: str, style: str, line: str, *rest: tuple[str, str]) -> None:
        text = Text.assemble((mark, style), " ", printable(line, LONGEST_LINE), *rest)
        self._progress.print(text)
        with self._lines.capture() as printed:  # without the display, which leaves nothing
            self._lines.print(text)
        note_printed(printed.get(), err=True)


def _copy_console(console: Console) -> Console:
    """One that renders as `console` does, and shows nothing of a display."""
    return Console(
        stderr=True,
        highlight=False,
        force_terminal=console.is_terminal,
        width=console.width,
        no_color=console.no_color,
    )


class _LabelColumn(ProgressColumn):
    """The label of a line, in its style."""

    def render(self, task: Task) -> Text:
        return Text(printable(task.description, LONGEST_LINE), style=task.fields["style"])
