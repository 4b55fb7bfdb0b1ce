"""The emitter for Android: what bundler calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from bundler.devices.contract import Need
from bundler.emitters.android.archive import TEMPLATE as ARCHIVE_TEMPLATE
from bundler.emitters.android.archive import write_archive
from bundler.emitters.android.framework import FRAMEWORK, FRAMEWORK_LOCK
from bundler.emitters.android.loader_classes import choose_runtime
from bundler.emitters.android.project import TEMPLATE, write_gradle
from bundler.emitters.contract import EmitRequest, Identity, ProofRequest
from bundler.emitters.jvm.artifacts import COMPILER, COMPILER_LOCK, list_runtime, name_runtime_lock
from bundler.emitters.jvm.context import check_signature
from bundler.emitters.jvm.names import choose_names, make_version
from bundler.emitters.rendering import compile_templates
from bundler.environments.registry import LockSource
from bundler.model.errors import UsageError
from bundler.model.measurement import Measurement
from bundler.model.paths import real_path
from bundler.model.proof import Emitted, VariantProof
from bundler.model.signature import Signature
from bundler.profiles.schema import TargetProfile

AAR: Final = "aar"
_FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "gradle": "a Gradle library module in Kotlin with the models among its assets, and an example app",
        AAR: "the same module compiled, as an AAR with its POM in a separate Maven repository",
    }
)


@dataclass(frozen=True, kw_only=True)
class AndroidEmitter:
    """Bundles for apps on Android."""

    name: str = "android"
    formats: Mapping[str, str] = field(default_factory=lambda: _FORMATS)
    lends_to: frozenset[str] = frozenset({"neutral"})
    untimed: str = (
        "bundler does not time modules for Android: call `benchmark()` on a phone, in your app or the example"
    )

    def move(self, package_format: str) -> tuple[str, ...]:
        """The ecosystem alone: the runtime is the target's own."""
        return (f'bundle.ecosystem="{self.name}"', f'bundle.format="{package_format}"')

    def preload(self) -> None:
        """Compile the templates."""
        compile_templates(TEMPLATE)
        compile_templates(ARCHIVE_TEMPLATE)

    def identify(self, model: str, package_name: str | None, version: str) -> Identity:
        """Maven's coordinates, without the version. Raises `UsageError`."""
        names = choose_names(model, package_name)
        return Identity(name=f"{names.group}:{names.artifact}", version=make_version(version))

    def check_signature(self, signature: Signature) -> None:
        """Raise `UsageError` for an input or output that the runtime's Java API cannot hold."""
        check_signature(signature)

    def locks(self, profile: TargetProfile, package_format: str) -> Mapping[str, LockSource | None]:
        """What compiles an archive. A project has none: Gradle fetches, by the versions in the catalogue."""
        if package_format != AAR:
            return {}
        version = choose_runtime(profile.runtime.version)
        return {name_runtime_lock(version): list_runtime(version), COMPILER_LOCK: COMPILER, FRAMEWORK_LOCK: FRAMEWORK}

    def emit(self, request: EmitRequest, folder: Path) -> Emitted:
        """Write the bundle into the empty `folder`. Raises `BundlerError`."""
        if request.format not in self.formats:
            known = ", ".join(self.formats)
            raise UsageError(f"the Android emitter has no format {request.format!r}", hint=f"its formats are {known}")
        write = write_archive if request.format == AAR else write_gradle
        return write(request, real_path(folder))

    def state_need(self, profile: TargetProfile) -> Need:
        """For any machine: this host runs a variant in place of its device."""
        return Need(runs="programs", target=profile.id, here=True)

    def prove(self, request: ProofRequest) -> tuple[VariantProof, ...]:
        """Run the golden set on every variant that an environment of this machine can run, and with the module's own
        loader on a Java virtual machine. Raises `BundlerError`.
        """
        from bundler.emitters.android.proving import prove_bundle  # noqa: PLC0415 (needed when proving alone)

        return prove_bundle(request)

    def measure(self, request: ProofRequest) -> tuple[Measurement, ...]:
        """Nothing: see `untimed`."""
        del request
        return ()


EMITTER = AndroidEmitter()
