"""Kinds of device by name, and the one that a bundle is run on.

Built-in and foreign kinds register alike, through the entry point group `bundler.devices`.
"""

from __future__ import annotations

import difflib
import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from bundler.devices.contract import Device, Kind, Need, Opening
from bundler.model.errors import DeviceMissingError, EnvironmentMissingError, UsageError
from bundler.model.registered import find_registered, registered_names

GROUP = "bundler.devices"

LOCAL = "local"
"""Asked first: what runs on this machine needs no other."""


def device_names() -> tuple[str, ...]:
    """All registered names, this machine's first. Raises `EnvironmentMissingError` where that is not among them."""
    names = registered_names(GROUP)
    if LOCAL not in names:
        raise EnvironmentMissingError("no device is registered", hint="install bundler again")
    return (LOCAL, *(name for name in names if name != LOCAL))


def find_kind(name: str) -> Kind:
    """The kind of device of this name. Raises `UsageError` for an unknown one."""
    point = find_registered(GROUP, name)
    if point is None:
        names = device_names()
        meant = next(iter((*difflib.get_close_matches(name, names, n=1), LOCAL)))
        raise UsageError(
            f"--on {name[:80]}: unknown device",
            details=(f"the devices are {', '.join(names)}",),
            hint=f"use --on {meant}; `bundler doctor` shows the available ones",
        )
    kind: Kind = point.load()
    return kind


def check_device(on: str, cache_root: Path) -> None:
    """Raise `UsageError` for what names no kind of device, and `DeviceMissingError` for one that is not here: before
    anything takes time. What is said of its setting is for those who open it to judge.
    """
    name, _, setting = on.partition(":")
    status = find_kind(name).examine(cache_root)
    if not status.found and not setting:
        raise DeviceMissingError(f"--on {name}: not available on this machine", hint=status.hint)


@contextmanager
def open_device(on: str | None, opening: Opening) -> Iterator[Device | str]:
    """The device named `on`, as `NAME` or `NAME:SETTING`; where none is named, the first that suits, or why none does.

    Raises `UsageError` for an unknown name, or a device that runs no such bundles, and `DeviceMissingError` when the
    one that is named is not here.
    """
    with ExitStack() as stack:
        yield _find_first(opening, stack) if on is None else _open_named(on, opening, stack)


def _open_named(on: str, opening: Opening, stack: ExitStack) -> Device:
    name, _, setting = on.partition(":")
    device = stack.enter_context(find_kind(name).open(replace(opening, setting=setting)))
    opening.need.require_fit(device.facts)
    return device


def _find_first(opening: Opening, stack: ExitStack) -> Device | str:
    need = opening.need
    name = next((name for name in device_names() if find_kind(name).suits(need)), None)
    if name is None:
        return f"{_explain_foreign(need)}, and no known device runs such programs"
    try:
        return stack.enter_context(find_kind(name).open(opening))
    except DeviceMissingError as error:
        # What tools said holds places and moments of this machine: it is for the screen, not for the manifest.
        for line in error.details:
            opening.say(line)
        return error.message if need.runs == "pages" else f"{_explain_foreign(need)}; {error.message}"


def _explain_foreign(need: Need) -> str:
    return f"it is for {need.describe()}, this machine is {platform.system()} on {platform.machine()}"
