"""The emitter for the web: what bundler calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from bundler.devices.contract import Need
from bundler.emitters.components import describe_loader
from bundler.emitters.contract import EmitRequest, Identity, ProofRequest, Served, ServeRequest
from bundler.emitters.maps import advise_on_maps
from bundler.emitters.payload import PAYLOAD
from bundler.emitters.rendering import compile_templates
from bundler.emitters.web.licences import describe_runtime
from bundler.emitters.web.names import choose_package_name, make_version
from bundler.emitters.web.nodejs import NODE_LOCK
from bundler.emitters.web.project import LOADER, TEMPLATE, write_web_project
from bundler.emitters.web.tarball import write_tgz
from bundler.emitters.web.vendor import runtime_lock
from bundler.environments.registry import LockSource
from bundler.model.errors import UsageError
from bundler.model.measurement import Measurement
from bundler.model.proof import Emitted, VariantProof
from bundler.model.signature import Signature, describe_type
from bundler.profiles.schema import TargetProfile
from bundler.support.text import shorten, visible

Writer = Callable[[EmitRequest, Path], Emitted]


def write_dir(request: EmitRequest, folder: Path) -> Emitted:
    """Write the package as a folder. Raises `BundlerError`."""
    written = write_web_project(request, folder)
    return Emitted(
        payload=PAYLOAD,
        package=written.context.package,
        dependencies=(describe_runtime(request, written.licences, folder), describe_loader(LOADER)),
        downloads=written.downloads,
    )


_WRITERS: Mapping[str, Writer] = MappingProxyType({"dir": write_dir, "tgz": write_tgz})

_FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "dir": "an npm package as a folder, to serve as it stands or to install",
        "tgz": "the same package as one file, as npm packs it",
    }
)


@dataclass(frozen=True, kw_only=True)
class WebEmitter:
    """Bundles for browsers and Node.js."""

    name: str = "web"
    formats: Mapping[str, str] = field(default_factory=lambda: _FORMATS)
    indexed: str = "tgz"
    timed_as_usual: str = "a page runs one call at a time, on the browser's threads and on inputs of the golden set"

    def preload(self) -> None:
        """Compile the templates."""
        compile_templates(TEMPLATE)

    def identify(self, model: str, package_name: str | None, version: str) -> Identity:
        """The package's name, and the version as npm has them. Raises `UsageError`."""
        return Identity(name=choose_package_name(model, package_name), version=make_version(version))

    def check_signature(self, signature: Signature) -> None:
        """Raise `UsageError` for an input or output that is not a tensor, which onnxruntime-web does not pass."""
        required = [port for port in signature.inputs if not port.optional]
        strange = next((port for port in (*required, *signature.outputs) if port.type.kind != "tensor"), None)
        if strange is not None:
            kind = visible(describe_type(strange.type))
            raise UsageError(
                f"{visible(shorten(strange.name))} is {kind}, which onnxruntime-web does not pass",
                hint=f"change the model's inputs and outputs to tensors{advise_on_maps(signature, strange)}",
            )

    def locks(self, profile: TargetProfile, package_format: str) -> Mapping[str, LockSource | None]:
        """The runtime's package, and what fetches it where there is no npm."""
        del package_format
        return {**runtime_lock(profile.runtime), NODE_LOCK: None}

    def emit(self, request: EmitRequest, folder: Path) -> Emitted:
        """Write the bundle into the empty `folder`. Raises `BundlerError`."""
        writer = _WRITERS.get(request.format)
        if writer is None:
            known = ", ".join(self.formats)
            raise UsageError(f"the web emitter has no format {request.format!r}", hint=f"its formats are {known}")
        return writer(request, folder)

    def state_need(self, profile: TargetProfile) -> Need:
        """A browser."""
        return Need(runs="pages", target=profile.id)

    def prove(self, request: ProofRequest) -> tuple[VariantProof, ...]:
        """Run the golden set in a real browser, on every variant that it can run. Raises `BundlerError`."""
        from bundler.emitters.web.proving import prove_bundle  # noqa: PLC0415 (needed when proving alone)

        return prove_bundle(request)

    def measure(self, request: ProofRequest) -> tuple[Measurement, ...]:
        """Time each variant that the browser can run. Empty where there is none."""
        from bundler.emitters.web.measuring import measure_bundle  # noqa: PLC0415 (needed when measuring alone)

        return measure_bundle(request)

    def serve(self, request: ServeRequest, report: Callable[[str], None]) -> AbstractContextManager[Served]:
        """Serve the package and its demo page."""
        from bundler.emitters.web.showing import serve_demo  # noqa: PLC0415 (needed when serving alone)

        return serve_demo(request, report)


EMITTER = WebEmitter()
