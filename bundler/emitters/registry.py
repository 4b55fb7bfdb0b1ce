"""Emitters by name. Built-in and foreign ones register alike, through the entry point group `bundler.emitters`."""

from __future__ import annotations

import difflib

from bundler.emitters.contract import Emitter, Lender
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


def find_move(ecosystem: str, package_format: str) -> tuple[str, ...]:
    """What changes in the profile of a target of this ecosystem for a format: nothing, but for one that it lends."""
    for emitter in _list_lenders(ecosystem):
        if package_format in emitter.formats:
            return emitter.move(package_format)
    return ()


def _list_lenders(ecosystem: str) -> list[Lender]:
    """The emitters of other ecosystems that write bundles for targets of this one, too."""
    emitters = map(find_emitter, emitter_names())
    return [emitter for emitter in emitters if isinstance(emitter, Lender) and ecosystem in emitter.lends_to]


def check_format(target: str, ecosystem: str, package_format: str, *, project: str = "") -> None:
    """Raise `UsageError` for a format that no bundle of `target`, which is of this ecosystem, has; `project` is the
    name of the project file that asks.
    """
    own = find_emitter(ecosystem).formats
    if package_format in own:  # without a look at the others, which takes a tenth of a second
        return
    lent = {name: text for emitter in _list_lenders(ecosystem) for name, text in emitter.formats.items()}
    formats = {**own, **find_emitter(NEUTRAL).formats, **lent}
    if package_format not in formats:
        meant = next(iter((*difflib.get_close_matches(package_format, formats, n=1), *own)))
        raise UsageError(
            f"{target} bundles have no format {package_format!r}",
            details=tuple(f"{name}: {text}" for name, text in formats.items()),
            hint=f"use --format {meant}" + (f', or write format = "{meant}" in {project}' if project else ""),
        )
