"""Compatible combinations on real machines: systems, instruction sets, wheel tags and CPU cores."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bundler.support.platforms import LEGACY_MANYLINUX

ARCHITECTURES: Mapping[str, tuple[str, ...]] = {
    "linux": ("x64", "arm64", "armv7"),
    "macos": ("x64", "arm64"),
    "windows": ("x64", "arm64"),
    "android": ("arm64", "armv7", "x64"),
    "ios": ("arm64",),
    "web": ("wasm32",),
}
"""Instruction sets of each system."""

_WHEEL_TAGS: Mapping[tuple[str, str], str] = {
    ("linux", "x64"): r"(manylinux\w+|musllinux\w+|linux)_x86_64",
    ("linux", "arm64"): r"(manylinux\w+|musllinux\w+|linux)_aarch64",
    ("linux", "armv7"): r"(manylinux\w+|musllinux\w+|linux)_armv7l",
    ("macos", "x64"): r"macosx_\d+_\d+_(x86_64|universal2)",
    ("macos", "arm64"): r"macosx_\d+_\d+_(arm64|universal2)",
    ("windows", "x64"): "win_amd64",
    ("windows", "arm64"): "win_arm64",
}
"""Platform tags by PEP 425, 600 and 656."""

CORES: Mapping[str, tuple[str, ...]] = {
    "arm64": (
        "a64fx",
        "cortex-a35",
        "cortex-a53",
        "cortex-a55",
        "cortex-a57",
        "cortex-a710",
        "cortex-a72",
        "cortex-a76",
        "max",
        "neoverse-n1",
        "neoverse-n2",
        "neoverse-v1",
    ),
    "armv7": ("cortex-a15", "cortex-a7", "cortex-a8", "cortex-a9", "max"),
    "x64": (
        "Broadwell",
        "Cascadelake-Server",
        "EPYC",
        "EPYC-Milan",
        "EPYC-Rome",
        "Haswell",
        "Icelake-Server",
        "IvyBridge",
        "Nehalem",
        "SandyBridge",
        "SapphireRapids",
        "Skylake-Client",
        "Skylake-Server",
        "Westmere",
        "max",
    ),
}
"""Core names that QEMU's user emulation takes (`qemu-aarch64 -cpu help`, `qemu-arm`, `qemu-x86_64`; QEMU 7.2 to 9)."""


def takes_wheels(system: str, architecture: str) -> bool:
    """Whether Python wheels exist for this kind of machine."""
    return (system, architecture) in _WHEEL_TAGS


def fits_tag(system: str, architecture: str, tag: str) -> bool:
    """Whether a wheel with this platform tag can be installed on this kind of machine."""
    return tag == "any" or re.fullmatch(_WHEEL_TAGS[system, architecture], tag) is not None


def required_version(tag: str) -> tuple[int, int] | None:
    """The least glibc or macOS that a platform tag asks for; None where it says nothing.

    `manylinux1`, `manylinux2010` and `manylinux2014` are glibc 2.5, 2.12 and 2.17 (PEP 600).
    """
    for name, minor in LEGACY_MANYLINUX.items():
        if tag.startswith(f"manylinux{name}_"):
            return 2, minor
    match = re.match(r"(?:manylinux|macosx)_(\d{1,4})_(\d{1,4})_", tag)
    return (int(match[1]), int(match[2])) if match else None
