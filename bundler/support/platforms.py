"""Systems and processors as profiles name them, with the names that Python and wheels have for them.

Read from `os.name`, `sys.platform`, `platform.system()` and `platform.machine()` on each system.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonNames:
    """A system's names in Python: `os.name`, `sys.platform`, and its values of `platform.system()`."""

    os_name: str
    sys_platform: str
    systems: tuple[str, ...]


SYSTEMS: Mapping[str, PythonNames] = {
    "linux": PythonNames(os_name="posix", sys_platform="linux", systems=("Linux",)),
    "macos": PythonNames(os_name="posix", sys_platform="darwin", systems=("Darwin",)),
    "windows": PythonNames(os_name="nt", sys_platform="win32", systems=("Windows",)),
    "android": PythonNames(os_name="posix", sys_platform="android", systems=("Android", "Linux")),
    "ios": PythonNames(os_name="posix", sys_platform="ios", systems=("iOS",)),
    "web": PythonNames(os_name="posix", sys_platform="emscripten", systems=("Emscripten",)),
}
MACHINES: Mapping[tuple[str, str], str] = {
    ("linux", "x64"): "x86_64",
    ("linux", "arm64"): "aarch64",
    ("linux", "armv7"): "armv7l",
    ("macos", "x64"): "x86_64",
    ("macos", "arm64"): "arm64",
    ("windows", "x64"): "AMD64",
    ("windows", "arm64"): "ARM64",
    ("web", "wasm32"): "wasm32",
}
"""`platform.machine()` of CPython on each."""

ARCHITECTURES = tuple(dict.fromkeys(architecture for _, architecture in MACHINES))
LEGACY_MANYLINUX: Mapping[str, int] = {"2014": 17, "2010": 12, "1": 5}
"""PEP 600: the minor version of glibc 2 of each legacy wheel tag."""

_DESKTOPS = ("linux", "macos", "windows")
_SPELLINGS: dict[str, str] = {"x86-64": "x64", "amd64": "x64", "aarch64": "arm64", "darwin": "macos"}
"""Other spellings of words in target ids."""


def python_machines(architecture: str) -> tuple[str, ...]:
    """Values of `platform.machine()` that fit, on any system."""
    return tuple(dict.fromkeys(machine for (_, name), machine in MACHINES.items() if name == architecture))


def name_system(system: str) -> str:
    """The profile's name of a `platform.system()`; empty for an unknown one."""
    return next((name for name in _DESKTOPS if system in SYSTEMS[name].systems), "")


def name_architecture(machine: str) -> str:
    """The profile's name of a `platform.machine()`, case-insensitive; empty for an unknown one."""
    found = {name.lower(): architecture for (_, architecture), name in MACHINES.items()}
    return found.get(machine.lower(), "")


def spell_platforms(name: str) -> str:
    """`linux-amd64` as the ids of targets are spelt: `linux-x64`."""
    spelt = name.casefold().replace("_", "-")
    for others, ours in _SPELLINGS.items():
        spelt = re.sub(rf"\b{others}\b", ours, spelt)
    return spelt
