"""The section `python` of a profile, and what it requires of the platform."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from bundler.profiles.chain import Key
from bundler.profiles.schema import TargetProfile
from bundler.profiles.sections import EcosystemSection
from bundler.support.platforms import LEGACY_MANYLINUX

ECOSYSTEM = "python"

PythonVersion = Annotated[str, Field(pattern=r"^3\.[0-9]+$", max_length=6)]
PlatformTag = Annotated[str, Field(pattern=r"^[a-z0-9_]+$", max_length=64)]

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


class PythonSettings(EcosystemSection):
    """For bundles that are Python packages."""

    versions: tuple[PythonVersion, ...] = ("3.11", "3.12", "3.13")
    """Python versions whose wheels are vendored."""
    wheel_platforms: tuple[PlatformTag, ...] = ()
    """Platform tags that the device's pip accepts, most specific first (`manylinux_2_28_x86_64`)."""

    def find_problems(self, profile: TargetProfile) -> Iterator[tuple[Key, str]]:
        """Wheels must exist for the platform and install on it."""
        system, architecture = profile.platform.system, profile.platform.architecture
        if takes_wheels(system, architecture):
            if profile.bundle.ecosystem == ECOSYSTEM:
                yield from self._check_wheels(system, architecture)
            yield from self._check_minimum(profile)
        elif profile.bundle.ecosystem == ECOSYSTEM:
            yield ("bundle", "ecosystem"), f"there are no Python wheels for {system} on {architecture}"

    def _check_wheels(self, system: str, architecture: str) -> Iterator[tuple[Key, str]]:
        for name in ("versions", "wheel_platforms"):
            if not getattr(self, name):
                yield ("python", name), "is empty, so a Python bundle would carry no runtime"
        for position, tag in enumerate(self.wheel_platforms):
            if not fits_tag(system, architecture, tag):
                key = ("python", "wheel_platforms", position)
                yield key, f'wheels of "{tag}" do not install on {system} {architecture}'

    def _check_minimum(self, profile: TargetProfile) -> Iterator[tuple[Key, str]]:
        """The platform must have at least what its wheels require."""
        platform = profile.platform
        if platform.minimum is None or platform.system not in ("linux", "macos"):
            return
        least = tuple(int(part) for part in platform.minimum.split(".")[:2] if part.isdigit())
        for position, tag in enumerate(self.wheel_platforms):
            needed = required_version(tag)
            fits = fits_tag(platform.system, platform.architecture, tag)
            if needed is not None and fits and needed > (*least, 0)[:2]:
                shown = ".".join(map(str, needed))
                text = f'"{tag}" asks for {shown}, but platform.minimum promises {platform.minimum}'
                yield ("python", "wheel_platforms", position), text


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
