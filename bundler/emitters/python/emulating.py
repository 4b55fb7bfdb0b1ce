"""Another processor's Python on this machine, where there is an emulator for it."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bundler.emitters.python.layout import Layout
from bundler.environments.emulation import EmulatedPython, emulated_python, find_emulator, find_images, make_image
from bundler.environments.emulation.packages import EmulationError
from bundler.environments.platforms import expand_tags
from bundler.model.errors import BundlerError
from bundler.profiles.resolve import resolve_target

_SYSTEM = "Linux"
"""User-mode emulation translates a processor, not an operating system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """An emulated interpreter: its `version`, the `core` that it runs on, and the platform tags of its wheels."""

    python: EmulatedPython
    version: str
    core: str
    tags: tuple[str, ...]


def find_foreign(layout: Layout, cache_root: Path, say: Callable[[str], None]) -> Foreign | str:
    """An interpreter that can start the bundle, or the reason why there is none."""
    requires = layout.config.variants[0].requires
    if _SYSTEM not in requires.systems or platform.system() != _SYSTEM:
        return "another operating system cannot be emulated here"
    machine = next((name for name in requires.machines if find_emulator(name)), None)
    if machine is None:
        return f"no emulator for {' or '.join(requires.machines)} is installed (qemu-user-static)"
    try:
        python = emulated_python(make_image(find_images(cache_root, machine), machine, say), _find_core(layout))
    except EmulationError as error:
        # What tools said holds places and moments of this machine: it is for the screen, not for the manifest.
        say(str(error))
        return "its processor could not be emulated here"
    if python.version not in layout.python_versions:
        return f"the emulated Python is {python.version}, the bundle is for {', '.join(layout.python_versions)}"
    newest = python.uv_platform.rpartition("-")[2]
    return Foreign(
        python=python,
        version=python.version,
        core=_find_core(layout) or machine,
        tags=expand_tags((f"{newest}_{machine}",)),
    )


def _find_core(layout: Layout) -> str | None:
    """The core that the target's profile names. A profile that is not at hand here names none."""
    try:
        return resolve_target(layout.config.target).platform.cpu
    except BundlerError:
        return None
