"""The live display on a terminal, drawn by rich."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from bundler.cli.activity import Activities, Activity
from bundler.cli.plain import plain_lines
from bundler.model.events import BuildFinished, Event, Listener, Message, StepFinished
from bundler.model.stage import Note

BUILDS = "builds"
"""The line that counts them."""

WIDE = 100
"""Columns of a terminal from which on there is room for a bar, `BAR` wide."""
BAR = 20

LABEL = 60
"""Columns that a build's name and its step take, as a rule; what a step tells of itself has the rest, and never less
than `MINIMUM`.
"""
MINIMUM = 12


@contextmanager
def open_live() -> Iterator[Listener]:
    """A listener with one spinner for each running step and one line for each finished one."""
    console = Console(stderr=True, highlight=False)
    one_line = Column(no_wrap=True, overflow="ellipsis")
    bar = (BarColumn(bar_width=BAR),) if console.width >= WIDE else ()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", table_column=one_line),
        *bar,
        TextColumn("{task.fields[text]}", table_column=copy(one_line)),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield LiveListener(progress)


class LiveListener:
    """Turns events into tasks of a `rich` progress display: one for each thing that goes on, and one that counts the
    builds, where there are several.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._activities = Activities()
        self._tasks: dict[tuple[str, str], TaskID] = {}
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Render one event."""
        with self._lock:
            self._activities.hear(event, time.monotonic())
            self._draw()
            self._print(event)

    def _draw(self) -> None:
        activities = {(activity.build, activity.text): activity for activity in self._activities.now()}
        for key in [key for key in self._tasks if key not in activities and key[0] != BUILDS]:
            self._progress.remove_task(self._tasks.pop(key))
        for key, activity in activities.items():
            if key not in self._tasks:
                self._tasks[key] = self._progress.add_task(_label(activity), total=None, text="")
            self._show(self._tasks[key], activity)
        self._count()

    def _show(self, task: TaskID, activity: Activity) -> None:
        known = None if activity.share is None else 1.0
        share = "" if activity.share is None else f"{activity.share:.0%}"
        room = max(MINIMUM, self._progress.console.width - LABEL - BAR)
        text = " ".join(filter(None, (share, activity.detail)))
        shown = text if len(text) <= room else f"{text[: room - 1]}…"
        self._progress.update(task, total=known, completed=activity.share or 0.0, text=escape(shown))

    def _count(self) -> None:
        done, total = self._activities.done, self._activities.total
        if total <= 1:
            return
        key = (BUILDS, "")
        if key not in self._tasks:
            self._tasks[key] = self._progress.add_task("[bold]bundles[/]", total=total, text="")
        self._progress.update(self._tasks[key], completed=done, text=f"{done} of {total}")

    def _print(self, event: Event) -> None:
        match event:
            case StepFinished():
                how = "[cyan]cached[/]" if event.cached else f"{event.seconds:.2f} s"
                self._progress.print(f"[green]✓[/] {escape(event.build)} {escape(event.title)} [dim]({how})[/]")
                for note in event.notes:
                    self._say(event.build, note)
            case Message():
                self._say(event.build, event.note)
            case BuildFinished():
                mark = "[red]✗[/]" if event.failed else "[green]✓[/]"
                for line in plain_lines(event):
                    self._progress.print(f"{mark} {escape(line)}")

    def _say(self, build: str, note: Note) -> None:
        mark = "[yellow]![/]" if note.level == "warning" else "[dim]·[/]"
        self._progress.print(f"{mark} {escape(build)} {escape(note.text)}")


def _label(activity: Activity) -> str:
    text = f"[dim]{escape(activity.text)}[/]" if activity.waits else escape(activity.text)
    return f"{escape(activity.build)} {text}"
