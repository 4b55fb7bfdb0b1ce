"""Progress events. Whoever does long work sends them; one console object renders them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bundler.model.stage import Note


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """A step begins to run: it has a worker, and what it waited for before does not count. `build` names the build
    (`model → target`), `position` counts from 1. What follows the plan (writing, verifying and timing the bundle) has
    neither: both are 0.
    """

    build: str
    step: str
    title: str
    position: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgress:
    """How far a running step has come, from 0 to 1."""

    build: str
    step: str
    fraction: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished:
    """A step has its result: `cached` when it was recalled. `seconds` is wall time since it began to run."""

    build: str
    step: str
    title: str
    cached: bool
    seconds: float
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsEnded:
    """No step of a plan runs any more: all are done, or one failed and the rest was given up."""

    build: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A line for a person: what is going on outside the steps (environments, emitting, proving)."""

    build: str
    note: Note


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildsStarted:
    """The builds of a call begin; `total` counts them."""

    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFinished:
    """One build has ended, `done` of `total` with it. Its events bore one of `names`."""

    build: str
    names: tuple[str, ...]
    failed: bool
    seconds: float
    done: int
    total: int


Event = BuildsStarted | BuildFinished | StepStarted | StepProgress | StepFinished | StepsEnded | Message
Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """A listener that drops what it hears."""


@dataclass(frozen=True, slots=True)
class Reporter:
    """Who listens, and the build that is spoken of (`model → target`; empty: none)."""

    listener: Listener = ignore
    build: str = ""

    def say(self, text: str) -> None:
        """A line for a person."""
        self.pass_on(Note(text=text))

    def warn(self, text: str) -> None:
        """A line for a person, as a warning."""
        self.pass_on(Note(text=text, level="warning"))

    def pass_on(self, note: Note) -> None:
        """What somebody else has noted."""
        self.listener(Message(build=self.build, note=note))


SILENT = Reporter()
"""Nobody listens."""
