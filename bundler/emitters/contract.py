"""The Protocol of an emitter, its requests and results. Emitters share no base class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from bundler.devices.contract import Need
from bundler.environments.lockfiles import Pin
from bundler.environments.registry import Environments, LockSource
from bundler.environments.sandbox import Sandbox
from bundler.model.events import Listener, Reporter
from bundler.model.facts import ModelFacts
from bundler.model.measurement import USUAL, Measurement, Timing
from bundler.model.proof import Dependency, Download, DownloadFile, Emitted, Proof, VariantProof
from bundler.model.results import Comparison, StepOutcome
from bundler.model.runtime import RuntimeConfig
from bundler.model.signature import Signature
from bundler.profiles.schema import TargetProfile

__all__ = [
    "BuiltComponent",
    "Dependency",
    "Download",
    "DownloadFile",
    "EmitRequest",
    "Emitted",
    "Emitter",
    "Identity",
    "Proof",
    "ProofRequest",
    "Runnable",
    "Selective",
    "Servable",
    "ServeRequest",
    "Served",
    "TimedAsUsual",
    "Untimed",
    "VariantProof",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltComponent:
    """What was built for one component. `artifacts` maps each variant to the steps that made its files: its model and
    what it ships beside that. `golden` is the folder of the golden set; `left_out` says which variants of the target
    it has not, and why.
    """

    facts: ModelFacts
    artifacts: Mapping[str, tuple[StepOutcome, ...]]
    golden: Path
    left_out: tuple[str, ...] = ()


PIPELINE: Final = "pipeline.py"
"""The file with the user's own pipeline, as an example of use beside a package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitRequest:
    """All that an emitter needs. `config` is the finished `runtime.json`, whose paths are relative to the payload
    folder; `components` has what was built for each of its components, by name. `version` is the version of the emitted
    package, `package_name` its name where the user gave one (None: it is made from the bundle's); `environments` give
    locks, tools and downloads. `pipeline` has the user's files with a function over all components, by the names that
    they have in the bundle: `PIPELINE` has the `pipeline_function`, the others what it imports. It needs packages, as
    requirements in `pipeline_requires`; `pipeline_pins` has what these add to the runtime's own. `versions_chosen` says
    that the user named the versions of the language that the bundle is for.
    """

    config: RuntimeConfig
    components: Mapping[str, BuiltComponent]
    profile: TargetProfile
    format: str
    version: str
    environments: Environments
    reporter: Reporter
    package_name: str | None = None
    pipeline: Mapping[str, Path] = field(default_factory=dict)
    pipeline_function: str = ""
    versions_chosen: bool = False
    pipeline_requires: tuple[str, ...] = ()
    pipeline_pins: tuple[Pin, ...] = ()

    @property
    def left_out(self) -> tuple[str, ...]:
        """The variants of the target that are not built, and why: with the component where there are several."""
        return tuple(
            text if self.config.sole else f"{name}: {text}"
            for name, built in self.components.items()
            for text in built.left_out
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What an emitted package is called: `name` in its index (None where a bundle is no package), `version` as the
    ecosystem writes it. `warnings` are sentences for the user.
    """

    name: str | None
    version: str
    warnings: tuple[str, ...] = ()


Compare = Callable[[Path, Path], Comparison]
"""Compares the golden set of one index with the outputs of another. Raises `StageError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRequest:
    """A finished bundle that is to be run on a device: `on` names it, as `NAME` or `NAME:SETTING` (None: the first that
    suits). `models` are the original models to time beside it, by component; `timing` is how to time it.
    `environments` are those of the build, so that a proof has the versions that its project locked; None where a bundle
    is verified on its own. In a `sandbox`, nothing of the bundle runs outside of it. `digests` are those of each
    component's original model and golden set, as `bundle.json` has them: what is run must be that. `compare` compares
    outputs that were brought back (None: the loader's own comparison counts).
    """

    bundle: Path
    cache_root: Path
    listener: Listener
    models: Mapping[str, Path] = field(default_factory=dict)
    digests: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    on: str | None = None
    timing: Timing = USUAL
    environments: Environments | None = None
    sandbox: Sandbox | None = None
    compare: Compare | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeRequest:
    """Where to serve `bundle`: on `host`, or without one on this machine alone, under a name of this run's own. Port 0
    takes any free one; without `isolated` the headers for threads are left out.
    """

    bundle: Path
    host: str | None = None
    port: int = 0
    isolated: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A served bundle: `url` is its demo's address, `isolated` whether its pages may use threads."""

    url: str
    bundle: Path
    isolated: bool


@runtime_checkable
class Servable(Protocol):
    """An emitter whose bundles can be opened in a browser."""

    def serve(self, request: ServeRequest, report: Callable[[str], None]) -> AbstractContextManager[Served]:
        """Serve a bundle and its demo while the context lasts; `report` gets a line for each refused request."""
        ...


@runtime_checkable
class Runnable(Protocol):
    """What an emitter says beside, so that a device that was named is asked before anything is built."""

    def state_need(self, profile: TargetProfile) -> Need:
        """What its bundles for this target ask of a device."""
        ...


@runtime_checkable
class Selective(Protocol):
    """An emitter whose loader does not take every type of value, or every name."""

    def check_signature(self, signature: Signature) -> None:
        """Raise `UsageError` for an input or output that its loader cannot hold: before anything is built."""
        ...


@runtime_checkable
class Untimed(Protocol):
    """An emitter whose bundles have no runtime of their own to time."""

    untimed: str
    """Why no bundle of its is timed."""


@runtime_checkable
class TimedAsUsual(Protocol):
    """An emitter whose bundles can be timed in only one way."""

    timed_as_usual: str
    """Why they take no batch, number of threads, or several callers."""


@runtime_checkable
class PipelineTimed(Protocol):
    """An emitter in whose bundles the user's own pipeline can be timed."""

    def measure_pipeline(self, request: ProofRequest, function: str, samples: Path) -> Measurement:
        """The times of `function` of the bundle's `PIPELINE` over the files of the folder `samples`, with the variants
        that run here first. Raises `UsageError` where it cannot be timed, and `StageError` where it fails.
        """
        ...


@runtime_checkable
class Indexed(Protocol):
    """An emitter whose bundles can be published to a package index."""

    indexed: str
    """The format for it: one file, of which an index takes one of a name and a version for a platform."""


class Emitter(Protocol):
    """One ecosystem."""

    name: str
    formats: Mapping[str, str]
    """Formats that it can pack, each with one line of explanation; the first is the default."""

    def preload(self) -> None:
        """Import and compile what `emit` needs, while the build waits for something else."""
        ...

    def identify(self, model: str, package_name: str | None, version: str) -> Identity:
        """What the package of the bundle `model` is called; `package_name` is the user's, None where there is none.

        Raises `UsageError` for a name or a version that the ecosystem does not take: before anything is built.
        """
        ...

    def locks(self, profile: TargetProfile, package_format: str) -> Mapping[str, LockSource | None]:
        """The locks whose files a build of this format downloads, by name, each with the source for a missing lock."""
        ...

    def emit(self, request: EmitRequest, folder: Path) -> Emitted:
        """Write the ecosystem's project into the empty `folder`. Raises `BundlerError`."""
        ...

    def prove(self, request: ProofRequest) -> tuple[VariantProof, ...]:
        """Run the golden set in the bundle's own runtime, in a fresh environment without a package index."""
        ...

    def measure(self, request: ProofRequest) -> tuple[Measurement, ...]:
        """Opening and latency of each variant that this machine can run, in turn with a default session on the original
        model, where one is given; empty when it can run none. It takes as long as `request.timing` says.
        """
        ...


@runtime_checkable
class Lender(Emitter, Protocol):
    """An emitter whose formats can be asked for on targets of other ecosystems."""

    lends_to: frozenset[str]
    """Those ecosystems."""

    def move(self, package_format: str) -> tuple[str, ...]:
        """What changes in the profile of such a target, as a user's own overrides: those count after these."""
        ...
