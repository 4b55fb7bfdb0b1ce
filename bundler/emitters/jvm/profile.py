"""The section `jvm` of a profile, and what it requires of the platform."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from bundler.profiles.chain import Key
from bundler.profiles.schema import TargetProfile, Version
from bundler.profiles.sections import EcosystemSection

ECOSYSTEM: Final = "jvm"

NATIVES: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("linux", "x64"): "linux-x64",
        ("linux", "arm64"): "linux-aarch64",
        ("macos", "arm64"): "osx-aarch64",
        ("windows", "x64"): "win-x64",
    }
)
"""By system and architecture, the folder of the runtime's jar with their libraries (onnxruntime 1.28.0)."""

PROVIDERS: Final = frozenset({"cpu"})
"""What those libraries have (measured: `OrtEnvironment.getAvailableProviders`); the CUDA one is another artifact."""


class JvmSettings(EcosystemSection):
    """For bundles that are jars."""

    runtime: Version = "1.28.0"
    """The version of ONNX Runtime from Maven: the newest without telemetry. A Java program cannot set the environment
    variable that turns it off in later ones before they look for it."""

    def find_problems(self, profile: TargetProfile) -> Iterator[tuple[Key, str]]:
        """The runtime must have libraries for the platform, and the variants' providers."""
        system, architecture = profile.platform.system, profile.platform.architecture
        if profile.bundle.ecosystem != ECOSYSTEM:
            return
        if (system, architecture) not in NATIVES:
            known = ", ".join(f"{name} {machine}" for name, machine in NATIVES)
            yield (
                ("bundle", "ecosystem"),
                f"the runtime for Java does not support {system} {architecture} (it supports {known})",
            )
        for position, variant in enumerate(profile.variants):
            for place, entry in enumerate(variant.providers):
                if entry.name not in PROVIDERS:
                    key = ("variants", position, "providers", place, "name")
                    yield key, f'the runtime for Java has no "{entry.name}"; it has cpu'
