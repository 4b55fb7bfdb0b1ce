"""Platform tags of wheels: which machines take them, which older ones a system also takes, and which environment
markers hold there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from bundler.model.errors import UsageError
from bundler.support.platforms import LEGACY_MANYLINUX, SYSTEMS

_OLDEST_GLIBC = {"x86_64": 5, "i686": 5}
_OLDEST_GLIBC_ELSEWHERE = 17
_SYSTEMS = {"linux": "linux", "macosx": "macos", "win": "windows"}
"""The profile's names, by what is in a tag."""
_WINDOWS_MACHINES = {"amd64": "AMD64", "arm64": "ARM64", "32": "x86"}

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


def takes_wheels(system: str, architecture: str) -> bool:
    """Whether Python wheels exist for this kind of machine."""
    return (system, architecture) in _WHEEL_TAGS


def fits_tag(system: str, architecture: str, tag: str) -> bool:
    """Whether a wheel with this platform tag can be installed on this kind of machine."""
    return tag == "any" or re.fullmatch(_WHEEL_TAGS[system, architecture], tag) is not None


def required_version(tag: str) -> tuple[int, int] | None:
    """The minimum glibc or macOS that a platform tag requires; None where it says nothing.

    `manylinux1`, `manylinux2010` and `manylinux2014` are glibc 2.5, 2.12 and 2.17 (PEP 600).
    """
    for name, minor in LEGACY_MANYLINUX.items():
        if tag.startswith(f"manylinux{name}_"):
            return 2, minor
    match = re.match(r"(?:manylinux|macosx)_(\d{1,4})_(\d{1,4})_", tag)
    return (int(match[1]), int(match[2])) if match else None


def expand_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """`tags` and all older ones that the same system takes, the most specific first, each once."""
    return tuple(dict.fromkeys(tag for given in tags for tag in _expand(given)))


def target_markers(tags: Sequence[str], python_version: str) -> dict[str, str]:
    """The environment markers (PEP 508) that hold where `tags` are accepted. Raises `UsageError` for an unknown tag."""
    tag = tags[0] if tags else ""
    system = next((ours for name, ours in _SYSTEMS.items() if name in tag.partition("_")[0]), None)
    if system is None:
        raise UsageError(
            f"{tag!r} is not a platform tag of a wheel",
            hint="tags look like manylinux_2_28_x86_64, macosx_14_0_arm64, win_amd64",
        )
    names = SYSTEMS[system]
    machine = re.sub(r"^(many|musl)?linux(1|2010|2014)?_(\d+_\d+_)?|^macosx_\d+_\d+_|^win_?", "", tag)
    return {
        "os_name": names.os_name,
        "sys_platform": names.sys_platform,
        "platform_system": names.systems[0],
        "platform_machine": _WINDOWS_MACHINES.get(machine, machine) if system == "windows" else machine,
        "python_version": python_version,
        "python_full_version": f"{python_version}.0",
        "implementation_name": "cpython",
        "implementation_version": f"{python_version}.0",
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_version": "",
        "extra": "",
    }


def _expand(tag: str) -> Iterable[str]:
    if found := re.fullmatch(r"manylinux_2_(\d+)_(\w+)", tag):
        return _manylinux(int(found[1]), found[2])
    if found := re.fullmatch(r"manylinux(1|2010|2014)_(\w+)", tag):
        return _manylinux(LEGACY_MANYLINUX[found[1]], found[2])
    if found := re.fullmatch(r"musllinux_1_(\d+)_(\w+)", tag):
        return [f"musllinux_1_{minor}_{found[2]}" for minor in range(int(found[1]), 0, -1)]
    if found := re.fullmatch(r"macosx_(\d+)_\d+_(\w+)", tag):
        return _macosx(int(found[1]), found[2])
    return [tag]


def _manylinux(newest: int, machine: str) -> Iterable[str]:
    names = {minor: f"manylinux{name}_{machine}" for name, minor in LEGACY_MANYLINUX.items()}
    for minor in range(newest, _OLDEST_GLIBC.get(machine, _OLDEST_GLIBC_ELSEWHERE) - 1, -1):
        yield f"manylinux_2_{minor}_{machine}"
        if minor in names:
            yield names[minor]


def _macosx(newest: int, machine: str) -> Iterable[str]:
    for major in range(newest, 10, -1):
        yield f"macosx_{major}_0_{machine}"
        yield f"macosx_{major}_0_universal2"
    if machine == "x86_64":
        for minor in range(16, 8, -1):
            yield f"macosx_10_{minor}_x86_64"
            yield f"macosx_10_{minor}_universal2"
