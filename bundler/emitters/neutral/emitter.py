"""The emitter for plain files, which belong to no ecosystem."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from bundler.devices.contract import Need
from bundler.emitters.contract import EmitRequest, Identity, ProofRequest
from bundler.emitters.neutral.model_package import write_model_package
from bundler.emitters.neutral.project import TEMPLATE, write_files
from bundler.emitters.rendering import compile_templates
from bundler.environments.registry import LockSource
from bundler.model.errors import UsageError
from bundler.model.measurement import Measurement
from bundler.model.proof import Emitted, VariantProof
from bundler.profiles.schema import TargetProfile

Writer = Callable[[EmitRequest, Path], Emitted]

_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+!_-]{0,63}", re.ASCII)
"""Valid as a version for Python, npm and most others; never a path or several lines."""

_WRITERS: Mapping[str, Writer] = MappingProxyType({"files": write_files, "ortpackage": write_model_package})

_FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "files": "a folder of models, golden set and documents, for an application to use",
        "ortpackage": "the same folder, which ONNX Runtime 1.28 and later opens as a model package",
    }
)


@dataclass(frozen=True, kw_only=True)
class NeutralEmitter:
    """Bundles without a loader and without a runtime, for any target."""

    name: str = "neutral"
    formats: Mapping[str, str] = field(default_factory=lambda: _FORMATS)
    lends_to: frozenset[str] = frozenset({"android"})
    untimed: str = "a bundle of files has no runtime to time"

    def move(self, package_format: str) -> tuple[str, ...]:
        """The ecosystem alone: what opens the files need not be Java, whose API sets fewer options."""
        return (f'bundle.ecosystem="{self.name}"', f'bundle.format="{package_format}"')

    def preload(self) -> None:
        """Compile the templates."""
        compile_templates(TEMPLATE)

    def identify(self, model: str, package_name: str | None, version: str) -> Identity:
        """No name, because no package index has it, and the given version. Raises `UsageError` when that is invalid."""
        del model
        if _VERSION.fullmatch(version) is None:
            raise UsageError(
                f"{version[:80]!r} is not a version",
                hint="use up to 64 letters, digits, '.', '+', '!', '_' and '-', beginning with a letter or digit: "
                "--version 1.2.3",
            )
        unused = f"a bundle of files is not a package: the name {package_name!r} is ignored" if package_name else ""
        return Identity(name=None, version=version, warnings=tuple(filter(None, (unused,))))

    def locks(self, profile: TargetProfile, package_format: str) -> Mapping[str, LockSource | None]:
        """None: nothing is downloaded."""
        del profile, package_format
        return {}

    def emit(self, request: EmitRequest, folder: Path) -> Emitted:
        """Write the bundle into the empty `folder`. Raises `BundlerError`."""
        writer = _WRITERS.get(request.format)
        if writer is None:
            known = ", ".join(self.formats)
            raise UsageError(f"the neutral emitter has no format {request.format!r}", hint=f"its formats are {known}")
        return writer(request, folder)

    def state_need(self, profile: TargetProfile) -> Need:
        """For any machine: this host runs a variant in place of its device."""
        return Need(runs="programs", target=profile.id, here=True)

    def prove(self, request: ProofRequest) -> tuple[VariantProof, ...]:
        """Run the golden set on every variant that an environment of this machine can run. Raises `BundlerError`."""
        from bundler.emitters.neutral.proving import prove_bundle  # noqa: PLC0415 (needed when proving alone)

        return prove_bundle(request)

    def measure(self, request: ProofRequest) -> tuple[Measurement, ...]:
        """Nothing: see `untimed`. Times of another runtime say nothing about the device."""
        del request
        return ()


EMITTER = NeutralEmitter()
