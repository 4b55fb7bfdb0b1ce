"""The emitter for the Java virtual machine: what bundler calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from bundler.devices.contract import Need
from bundler.emitters.contract import EmitRequest, Identity, ProofRequest
from bundler.emitters.jvm.artifacts import COMPILER, COMPILER_LOCK, list_runtime, name_runtime_lock
from bundler.emitters.jvm.context import check_signature
from bundler.emitters.jvm.names import choose_names, make_version
from bundler.emitters.jvm.profile import JvmSettings
from bundler.emitters.jvm.project import TEMPLATE, write_bundle
from bundler.emitters.rendering import compile_templates
from bundler.environments.registry import LockSource
from bundler.model.errors import UsageError
from bundler.model.measurement import Measurement
from bundler.model.paths import real_path
from bundler.model.proof import Emitted, VariantProof
from bundler.model.signature import Signature
from bundler.profiles.schema import TargetProfile
from bundler.support.platforms import SYSTEMS, python_machines

_FORMATS: Mapping[str, str] = MappingProxyType(
    {"jar": "a jar for Kotlin and Java with the model in it, its POM, and the runtime next to it"}
)


@dataclass(frozen=True, kw_only=True)
class JvmEmitter:
    """Bundles for servers and desktops in Kotlin and Java."""

    name: str = "jvm"
    formats: Mapping[str, str] = field(default_factory=lambda: _FORMATS)
    indexed: str = "jar"
    lends_to: frozenset[str] = frozenset({"python"})
    timed_as_usual: str = "its loader times calls of one caller, on the first sample of the golden set"

    def move(self, package_format: str) -> tuple[str, ...]:
        """The runtime is Maven's, and has no plugins."""
        version = JvmSettings().runtime
        return (
            f'bundle.ecosystem="{self.name}"',
            f'bundle.format="{package_format}"',
            f'runtime.version="{version}"',
        )

    def preload(self) -> None:
        """Compile the templates."""
        compile_templates(TEMPLATE)

    def identify(self, model: str, package_name: str | None, version: str) -> Identity:
        """Maven's coordinates, without the version. Raises `UsageError`."""
        names = choose_names(model, package_name)
        return Identity(name=f"{names.group}:{names.artifact}", version=make_version(version))

    def check_signature(self, signature: Signature) -> None:
        """Raise `UsageError` for an input or output that the runtime's Java API cannot hold."""
        check_signature(signature)

    def locks(self, profile: TargetProfile, package_format: str) -> Mapping[str, LockSource | None]:
        """The runtime with what it requires, and the compiler."""
        del package_format
        version = profile.runtime.version
        return {name_runtime_lock(version): list_runtime(version), COMPILER_LOCK: COMPILER}

    def emit(self, request: EmitRequest, folder: Path) -> Emitted:
        """Write the bundle into the empty `folder`. Raises `BundlerError`."""
        if request.format not in self.formats:
            known = ", ".join(self.formats)
            raise UsageError(f"the JVM emitter has no format {request.format!r}", hint=f"its formats are {known}")
        return write_bundle(request, real_path(folder))

    def state_need(self, profile: TargetProfile) -> Need:
        """A Java virtual machine on the target's system and processor."""
        systems, machines = SYSTEMS[profile.platform.system].systems, python_machines(profile.platform.architecture)
        return Need(runs="classes", systems=systems, machines=machines, target=profile.id)

    def prove(self, request: ProofRequest) -> tuple[VariantProof, ...]:
        """Run the golden set with the jar's own loader and runtime. Raises `BundlerError`."""
        from bundler.emitters.jvm.proving import prove_bundle  # noqa: PLC0415 (needed when proving alone)

        return prove_bundle(request)

    def measure(self, request: ProofRequest) -> tuple[Measurement, ...]:
        """Time each variant that runs here."""
        from bundler.emitters.jvm.measuring import measure_bundle  # noqa: PLC0415 (needed when measuring alone)

        return measure_bundle(request)


EMITTER = JvmEmitter()
