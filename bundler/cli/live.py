"""The live display on a terminal, drawn by rich."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from bundler.model.events import Event, Listener, Message, StepFinished, StepProgress, StepStarted
from bundler.model.stage import Note


@contextmanager
def open_live() -> Iterator[Listener]:
    """A listener with one spinner for each running step and one line for each finished one."""
    console = Console(stderr=True, highlight=False)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield LiveListener(progress)


class LiveListener:
    """Turns events into tasks of a `rich` progress display."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[tuple[str, str], TaskID] = {}

    def __call__(self, event: Event) -> None:
        """Render one event."""
        match event:
            case StepStarted():
                self._start(event)
            case StepProgress():
                self._advance(event)
            case StepFinished():
                self._finish(event)
            case Message():
                self._say(event.build, event.note)

    def _start(self, event: StepStarted) -> None:
        label = f"{escape(event.build)} [dim]{event.position}/{event.total}[/] {escape(event.title)}"
        self._tasks[event.build, event.step] = self._progress.add_task(label, total=None, text="")

    def _advance(self, event: StepProgress) -> None:
        task = self._tasks.get((event.build, event.step))
        if task is not None:
            self._progress.update(task, total=1.0, completed=event.fraction, text=escape(event.text))

    def _finish(self, event: StepFinished) -> None:
        task = self._tasks.pop((event.build, event.step), None)
        if task is not None:
            self._progress.remove_task(task)
        how = "[cyan]cached[/]" if event.cached else f"{event.seconds:.2f} s"
        self._progress.print(f"[green]✓[/] {escape(event.build)} {escape(event.title)} [dim]({how})[/]")
        for note in event.notes:
            self._say(event.build, note)

    def _say(self, build: str, note: Note) -> None:
        mark = "[yellow]![/]" if note.level == "warning" else "[dim]·[/]"
        self._progress.print(f"{mark} {escape(build)} {escape(note.text)}")
