"""Progress events. Long operations send them; one console object renders them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bundler.model.stage import Note


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """A step begins to run in its worker; waiting before that does not count. `build` names the build
    (`model → target`), `position` counts from 1. For phases after the plan (writing, verifying and timing the bundle)
    `position` and `total` are 0.
    """

    build: str
    step: str
    title: str
    position: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgress:
    """Progress of a running step, from 0 to 1."""

    build: str
    step: str
    fraction: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished:
    """A step has its result: `cached` when it came from the cache. `seconds` is wall time since it began to run."""

    build: str
    step: str
    title: str
    cached: bool
    seconds: float
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsEnded:
    """No step of a plan is running: all are done, or one failed and the rest was cancelled."""

    build: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message about work outside the steps (environments, emitting, proving)."""

    build: str
    note: Note


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildsStarted:
    """The builds of a call begin; `total` counts them."""

    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFinished:
    """One build has ended, `done` of `total` including it. Its events have one of `names`."""

    build: str
    names: tuple[str, ...]
    failed: bool
    seconds: float
    done: int
    total: int


Event = BuildsStarted | BuildFinished | StepStarted | StepProgress | StepFinished | StepsEnded | Message
Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """A listener that ignores every event."""


@dataclass(frozen=True, slots=True)
class Reporter:
    """A listener, and the build that messages are about (`model → target`; empty: none)."""

    listener: Listener = ignore
    build: str = ""

    def say(self, text: str) -> None:
        """Send an informational message."""
        self.pass_on(Note(text=text))

    def warn(self, text: str) -> None:
        """Send a warning."""
        self.pass_on(Note(text=text, level="warning"))

    def alert(self, text: str) -> None:
        """Send a warning that concerns safety: it is always shown."""
        self.pass_on(Note(text=text, level="safety"))

    def pass_on(self, note: Note) -> None:
        """Send a note of a stage."""
        self.listener(Message(build=self.build, note=note))


SILENT = Reporter()
"""Without a listener."""
