"""Emitters by name. Built-in and foreign ones register alike, through the entry point group `bundler.emitters`."""

from __future__ import annotations

import difflib

from bundler.emitters.contract import Emitter
from bundler.model.errors import UsageError
from bundler.model.registered import find_registered, registered_names

GROUP = "bundler.emitters"

NEUTRAL = "neutral"
"""The emitter of no ecosystem: its formats can be asked for on any target."""


def emitter_names() -> tuple[str, ...]:
    """All registered names, sorted."""
    return registered_names(GROUP)


def find_emitter(name: str) -> Emitter:
    """The emitter for an ecosystem. Raises `UsageError` for an unknown name."""
    point = find_registered(GROUP, name)
    if point is None:
        known = ", ".join(emitter_names())
        raise UsageError(f"no emitter is named {name!r}", hint=f"the emitters are {known}")
    emitter: Emitter = point.load()
    return emitter


def find_writer(ecosystem: str, package_format: str) -> Emitter:
    """The emitter that writes `package_format` for a target of this ecosystem: its own, or the neutral one for a format
    that only that one has. Raises `UsageError` for an unknown ecosystem.
    """
    own = find_emitter(ecosystem)
    if package_format in own.formats or find_registered(GROUP, NEUTRAL) is None:
        return own
    neutral = find_emitter(NEUTRAL)
    return neutral if package_format in neutral.formats else own


def check_format(target: str, ecosystem: str, package_format: str, *, project: str = "") -> None:
    """Raise `UsageError` for a format that no bundle of `target`, which is of this ecosystem, has; `project` is the
    name of the project file that asks.
    """
    own = find_emitter(ecosystem).formats
    formats = {**own, **find_emitter(NEUTRAL).formats}
    if package_format not in formats:
        meant = next(iter((*difflib.get_close_matches(package_format, formats, n=1), *own)))
        raise UsageError(
            f"{target} bundles have no format {package_format!r}",
            details=tuple(f"{name}: {text}" for name, text in formats.items()),
            hint=f"use --format {meant}" + (f', or write format = "{meant}" in {project}' if project else ""),
        )
