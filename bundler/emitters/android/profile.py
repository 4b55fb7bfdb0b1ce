"""The section `android` of a profile, and what it requires of the platform."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from pydantic import Field

from bundler.profiles.chain import Key
from bundler.profiles.schema import TargetProfile
from bundler.profiles.sections import EcosystemSection

ECOSYSTEM: Final = "android"

ABIS: Final[Mapping[str, str]] = MappingProxyType({"arm64": "arm64-v8a", "x64": "x86_64", "armv7": "armeabi-v7a"})
"""Android's names of instruction sets (its NDK's documentation, "Android ABIs")."""

LEAST_SDK: Final = 24
"""The loader uses nothing newer, and the runtime's archives ask for it too."""


class AndroidSettings(EcosystemSection):
    """For bundles that are Gradle modules."""

    compile_sdk: int = Field(default=35, ge=LEAST_SDK, le=99)
    """The API level that the module is compiled against."""
    gradle_plugin: str = Field(default="8.10.1", pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$", max_length=20)
    """The version of the Android Gradle Plugin in the version catalogue."""

    def find_problems(self, profile: TargetProfile) -> Iterator[tuple[Key, str]]:
        """The platform must be Android, and not older than the loader."""
        if profile.bundle.ecosystem != ECOSYSTEM:
            return
        platform = profile.platform
        if platform.system != "android":
            yield ("bundle", "ecosystem"), f"a Gradle module runs on Android, not on {platform.system}"
            return
        if platform.minimum is not None and (not platform.minimum.isdecimal() or int(platform.minimum) < LEAST_SDK):
            yield ("platform", "minimum"), f"the loader needs API level {LEAST_SDK} or later"
