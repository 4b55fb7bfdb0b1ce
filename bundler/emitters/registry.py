"""Emitters by name. Built-in and foreign ones register alike, through the entry point group `bundler.emitters`."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from bundler.emitters.contract import Emitter
from bundler.model.errors import UsageError

GROUP = "bundler.emitters"

NEUTRAL = "neutral"
"""The emitter of no ecosystem: its formats can be asked for on any target."""


def emitter_names() -> tuple[str, ...]:
    """All registered names, sorted."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def find_emitter(name: str) -> Emitter:
    """The emitter for an ecosystem. Raises `UsageError` for an unknown name."""
    points: list[EntryPoint] = [point for point in entry_points(group=GROUP) if point.name == name]
    if not points:
        known = ", ".join(emitter_names())
        raise UsageError(f"no emitter is named {name!r}", hint=f"the emitters are {known}")
    emitter: Emitter = points[0].load()
    return emitter


def find_writer(ecosystem: str, package_format: str) -> Emitter:
    """The emitter that writes `package_format` for a target of this ecosystem: its own, or the neutral one for a format
    that only that one has. Raises `UsageError` for an unknown ecosystem.
    """
    own = find_emitter(ecosystem)
    if package_format in own.formats or NEUTRAL not in emitter_names():
        return own
    neutral = find_emitter(NEUTRAL)
    return neutral if package_format in neutral.formats else own
