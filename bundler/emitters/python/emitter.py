"""The emitter for Python: what bundler calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from bundler.devices.contract import Need
from bundler.emitters.contract import PIPELINE, EmitRequest, Identity, ProofRequest
from bundler.emitters.python.confusion import warn_of
from bundler.emitters.python.dir_format import write_dir
from bundler.emitters.python.layout import PIPELINE_LOCK
from bundler.emitters.python.licences import describe_pin
from bundler.emitters.python.names import choose_names, make_version
from bundler.emitters.python.pex_format import PACKAGER, write_pex
from bundler.emitters.python.wheel_format import write_wheel
from bundler.emitters.python.wheelhouse import (
    BACKEND_LOCK,
    DOWNLOADER,
    list_requirements,
    name_runtime_lock,
)
from bundler.emitters.rendering import compile_templates
from bundler.emitters.writing import copy_file, write_text
from bundler.environments.lockfiles import render_pins
from bundler.environments.registry import LockSource, PythonPackages
from bundler.model.errors import UsageError
from bundler.model.measurement import Measurement
from bundler.model.paths import real_path
from bundler.model.proof import Emitted, VariantProof
from bundler.profiles.schema import TargetProfile
from bundler.support.platforms import SYSTEMS, python_machines
from bundler.support.text import visible

Writer = Callable[[EmitRequest, Path], Emitted]

_WRITERS: Mapping[str, Writer] = MappingProxyType({"dir": write_dir, "wheel": write_wheel, "pex": write_pex})


_FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "dir": "a package with a wheels/ folder, installable with no index",
        "wheel": "one wheel with the model as package data and the runtime pinned",
        "pex": "one executable file with the model, the runtime and the loader",
    }
)


@dataclass(frozen=True, kw_only=True)
class PythonEmitter:
    """Bundles for Python."""

    name: str = "python"
    formats: Mapping[str, str] = field(default_factory=lambda: _FORMATS)
    indexed: str = "wheel"

    def preload(self) -> None:
        """Compile the templates."""
        compile_templates("python")

    def identify(self, model: str, package_name: str | None, version: str) -> Identity:
        """The distribution's name and the version as PEP 440 writes it. Raises `UsageError`."""
        names = choose_names(model, package_name)
        return Identity(name=names.distribution, version=make_version(version), warnings=warn_of(names))

    def locks(self, profile: TargetProfile, package_format: str) -> Mapping[str, LockSource | None]:
        """The runtime, the build backend, what downloads them, and for a single file its packager."""
        runtime = PythonPackages(list_requirements(profile.runtime))
        tools = (BACKEND_LOCK, DOWNLOADER, *((PACKAGER,) if package_format == "pex" else ()))
        return {name_runtime_lock(profile.runtime): runtime, **dict.fromkeys(tools)}

    def emit(self, request: EmitRequest, folder: Path) -> Emitted:
        """Write the bundle into the empty `folder`. Raises `BundlerError`."""
        writer = _WRITERS.get(request.format)
        if writer is None:
            known = ", ".join(self.formats)
            raise UsageError(f"the Python emitter has no format {request.format!r}", hint=f"its formats are {known}")
        folder = real_path(folder)  # packers run in folders of their own
        emitted = writer(request, folder)
        _copy_pipeline(request, folder)
        return replace(emitted, dependencies=(*emitted.dependencies, *map(describe_pin, request.pipeline_pins)))

    def state_need(self, profile: TargetProfile) -> Need:
        """A machine of the target's system and processor."""
        systems, machines = SYSTEMS[profile.platform.system].systems, python_machines(profile.platform.architecture)
        return Need(runs="programs", systems=systems, machines=machines, target=profile.id)

    def prove(self, request: ProofRequest) -> tuple[VariantProof, ...]:
        """Run the golden set in the bundle's own runtime, with no index. Raises `BundlerError`."""
        from bundler.emitters.python.proving import prove_bundle  # noqa: PLC0415 (needed when proving alone)

        return prove_bundle(request)

    def measure_pipeline(self, request: ProofRequest, function: str, samples: Path) -> Measurement:
        """Time the user's own pipeline over the samples in the bundle's own runtime."""
        from bundler.emitters.python.timing_pipelines import measure_pipeline  # noqa: PLC0415 (as above)

        return measure_pipeline(request, function, samples)

    def measure(self, request: ProofRequest) -> tuple[Measurement, ...]:
        """Time each variant that runs here at full speed, in turns with a default session on the original model."""
        from bundler.emitters.python.measuring import measure_bundle  # noqa: PLC0415 (needed when measuring alone)

        return measure_bundle(request)


EMITTER = PythonEmitter()


_MAX_SHOWN = 8
"""Files of a pipeline that the message names."""


def _copy_pipeline(request: EmitRequest, folder: Path) -> None:
    """Raise `UsageError` for a module that would replace a file of the bundle, or hide its package."""
    if request.pipeline_pins:
        write_text(folder / PIPELINE_LOCK, render_pins(request.pipeline_pins))
    for name in request.pipeline:
        taken = folder / name.partition("/")[0]
        if (folder / name).exists() or (name != PIPELINE and taken.with_suffix("").exists()):
            raise UsageError(
                f"the pipeline needs {visible(name)}, and the bundle has a file of this name",
                hint="rename it",
            )
    for name, path in request.pipeline.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy_file(path, folder / name)
    if request.pipeline:
        shown = [visible(name) for name in list(request.pipeline)[:_MAX_SHOWN]]
        more = len(request.pipeline) - len(shown)
        shown += [f"{more} more"] if more else []
        request.reporter.say(f"{', '.join(shown)} in the bundle as an example of use")
    if request.pipeline_pins:
        needed = ", ".join(visible(text) for text in request.pipeline_requires[:_MAX_SHOWN])
        request.reporter.say(f"packages of the pipeline ({needed}) are not in the bundle; {PIPELINE_LOCK} pins them")
