"""Progress events. Whoever does long work sends them; one console object renders them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bundler.model.stage import Note


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """A step begins to run. `build` names the build (`model → target`), `position` counts from 1."""

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
    """A step has its result: `cached` when it was recalled. `seconds` is wall time."""

    build: str
    step: str
    title: str
    cached: bool
    seconds: float
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A line for a person: what is going on outside the steps (environments, emitting, proving)."""

    build: str
    note: Note


Event = StepStarted | StepProgress | StepFinished | Message
Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """A listener that drops what it hears."""
