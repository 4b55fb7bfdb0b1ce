"""What an application must add by itself, because the bundle carries no runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from bundler.profiles.schema import TargetProfile

_PLACES: Mapping[str, str] = MappingProxyType(
    {
        "android": "Maven Central, for Gradle",
        "ios": "CocoaPods or a Swift package",
        "macos": "CocoaPods, a Swift package, or the runtime's release archive",
        "windows": "NuGet, the Python Package Index, or the runtime's release archive",
        "linux": "the runtime's release archive, the Python Package Index, or Maven Central for a JVM",
        "web": "npm",
    }
)
"""Where each system's applications get it."""

_MAVEN_GROUP = "com.microsoft.onnxruntime"
"""The group of the runtime's own packages on Maven Central (`onnxruntime-android`, `onnxruntime-android-qnn`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingredient:
    """One package with its exact version; `role` says what it is, `place` where it comes from."""

    name: str
    version: str
    role: str
    place: str


def list_ingredients(profile: TargetProfile) -> tuple[Ingredient, ...]:
    """The runtime first, then its plugins by name."""
    runtime, system = profile.runtime, profile.platform.system
    place = "your own build" if runtime.custom_build else _PLACES[system]
    name = runtime.package
    if system == "android" and not runtime.custom_build and "." not in name:
        name = f"{_MAVEN_GROUP}:{name}"
    plugins = tuple(
        Ingredient(name=plugin, version=runtime.plugins[plugin], role="more providers", place=_PLACES[system])
        for plugin in sorted(runtime.plugins)
    )
    return (Ingredient(name=name, version=runtime.version, role="runtime", place=place), *plugins)
