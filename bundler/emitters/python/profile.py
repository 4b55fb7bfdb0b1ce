"""The section `python` of a profile, and what it requires of the platform."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from bundler.emitters.python.tags import fits_tag, required_version, takes_wheels
from bundler.profiles.chain import Key
from bundler.profiles.schema import TargetProfile
from bundler.profiles.sections import EcosystemSection

ECOSYSTEM = "python"

OLDEST_MINOR = 11
"""Of Python 3: the oldest that a bundle's loader runs on, as its `__init__.py` says."""

PythonVersion = Annotated[str, Field(pattern=r"^3\.[0-9]+$", max_length=6)]
PlatformTag = Annotated[str, Field(pattern=r"^[a-z]+[0-9]{0,4}(_[0-9]{1,4})*(_[a-z][a-z0-9_]*)?$", max_length=64)]
"""Versions in it have at most four digits: a tag stands for all older ones too, each of which is listed."""


class PythonSettings(EcosystemSection):
    """For bundles that are Python packages."""

    versions: tuple[PythonVersion, ...] = ("3.11", "3.12", "3.13")
    """Python versions whose wheels are vendored."""
    wheel_platforms: tuple[PlatformTag, ...] = ()
    """Platform tags that the device's pip accepts, most specific first (`manylinux_2_28_x86_64`)."""

    def describe_pythons(self, *, chosen: bool) -> str:
        """What the user of a build reads of them: which there are, and how to get another unless they were `chosen`."""
        how = "" if chosen else "; --python VERSION builds it for another"
        return f"the bundle is for Python {', '.join(self.versions)}{how}"

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
        for position, version in enumerate(self.versions):
            if int(version.partition(".")[2]) < OLDEST_MINOR:
                yield ("python", "versions", position), f"a bundle requires Python 3.{OLDEST_MINOR} or newer"
        for name in ("versions", "wheel_platforms"):
            if not getattr(self, name):
                yield ("python", name), "is empty: a Python bundle would carry no runtime"
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
                text = f'"{tag}" requires {shown}, but platform.minimum is {platform.minimum}'
                yield ("python", "wheel_platforms", position), text
