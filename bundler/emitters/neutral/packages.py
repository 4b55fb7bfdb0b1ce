"""The packages that an application must add, because the bundle contains no runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from bundler.emitters.components import describe_required
from bundler.model.proof import Dependency
from bundler.profiles.schema import TargetProfile
from bundler.providers.availability import is_in_range
from bundler.providers.registry import find_provider, provider_names

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
"""Where applications for each system get the runtime."""

_PURL_TYPES: Mapping[str, str] = MappingProxyType({"android": "maven", "web": "npm"})
"""Where applications for a system have one place only; elsewhere the name alone does not say which package it is."""

_RUNTIME_GROUP = "com.microsoft.onnxruntime"
"""The group of the runtime's own packages on Maven Central."""

_TELEMETRY_SINCE = "1.29"
"""From this release on, the runtime's packages for these systems send telemetry by default (ONNX Runtime 1.29.0, POSIX
telemetry; seen in the library of 1.31.1). Those for Windows did so before (its `docs/Privacy.md`).
"""
_TELEMETRY_SYSTEMS = ("linux", "macos", "android", "ios")


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
    knowledge = [find_provider(name) for name in provider_names()]
    groups = {package: group for known in knowledge for package, group in known.presence.maven_groups.items()}
    place = "your own build" if runtime.custom_build else _PLACES[system]
    group = "" if runtime.custom_build else _RUNTIME_GROUP
    first = Ingredient(name=_name(runtime.package, group, system), version=runtime.version, role="runtime", place=place)
    plugins = (
        Ingredient(
            name=_name(plugin, groups.get(plugin, ""), system),
            version=runtime.plugins[plugin],
            role="plugin, or a package that one requires",
            place=_PLACES[system],
        )
        for plugin in sorted(runtime.plugins)
    )
    return (first, *plugins)


def describe_ingredients(profile: TargetProfile, provider: str) -> tuple[Dependency, ...]:
    """The same as components that the bundle does not contain; `provider` names what adds them. ONNX Runtime is under
    the MIT licence, its plugins under those of their vendors.
    """
    kind = "generic" if profile.runtime.custom_build else _PURL_TYPES.get(profile.platform.system, "generic")
    return tuple(
        describe_required(item.name, item.version, kind, provider, licence="MIT" if item.role == "runtime" else "")
        for item in list_ingredients(profile)
    )


def reports_usage(profile: TargetProfile) -> bool:
    """Whether the target's runtime may send telemetry by default; a custom build may, too."""
    runtime, system = profile.runtime, profile.platform.system
    if runtime.custom_build or system == "windows":
        return True
    return system in _TELEMETRY_SYSTEMS and is_in_range(runtime.version, f">={_TELEMETRY_SINCE}")


def _name(package: str, group: str, system: str) -> str:
    """The package's name for the system's build tool."""
    return f"{group}:{package}" if group and system == "android" else package
