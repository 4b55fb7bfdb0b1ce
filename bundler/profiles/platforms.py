"""A platform's names as Python's `platform` module gives them on the device.

Read from `platform.system()` and `platform.machine()` on each system: Windows says `AMD64` and `ARM64`, Linux `x86_64`
and `aarch64`, macOS `x86_64` and `arm64`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bundler.profiles.schema import Platform

_SYSTEMS: dict[str, tuple[str, ...]] = {
    "linux": ("Linux",),
    "macos": ("Darwin",),
    "windows": ("Windows",),
    "android": ("Android", "Linux"),
    "ios": ("iOS",),
    "web": ("Emscripten",),
}
_MACHINES: dict[str, tuple[str, ...]] = {
    "x64": ("x86_64", "AMD64"),
    "arm64": ("aarch64", "arm64", "ARM64"),
    "armv7": ("armv7l",),
    "wasm32": ("wasm32",),
}
ARCHITECTURES = tuple(_MACHINES)
_SPELLINGS: dict[str, str] = {"x86-64": "x64", "amd64": "x64", "aarch64": "arm64", "darwin": "macos"}
"""Words of other programs for those of target ids."""


def python_systems(platform: Platform) -> tuple[str, ...]:
    """Values of `platform.system()` that fit."""
    return _SYSTEMS[platform.system]


def python_machines(platform: Platform) -> tuple[str, ...]:
    """Values of `platform.machine()` that fit."""
    return _MACHINES[platform.architecture]


def spell_platforms(name: str) -> str:
    """`linux-amd64` as the ids of targets are spelt: `linux-x64`."""
    spelt = name.casefold().replace("_", "-")
    for others, ours in _SPELLINGS.items():
        spelt = re.sub(rf"\b{others}\b", ours, spelt)
    return spelt
