"""What an emitter takes and gives. One Protocol; emitters share no base class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from bundler.model.events import Listener
from bundler.model.facts import ModelFacts
from bundler.model.results import Comparison, StepOutcome
from bundler.model.runtime import RuntimeConfig
from bundler.profiles.schema import TargetProfile

Proof = Literal["executed", "emulated", "stand-in", "resolved"]
"""How far a proof went; see the README for what each level promises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitRequest:
    """All that an emitter needs. `models` maps each variant to the step that made its model, `golden` is the folder
    of the golden set; `config` is the finished `runtime.json`, whose paths are relative to the payload folder.
    `version` is the version of the emitted package; `cache_root` is where downloads may be kept.
    """

    config: RuntimeConfig
    facts: ModelFacts
    profile: TargetProfile
    format: str
    version: str
    models: Mapping[str, StepOutcome]
    golden: Path
    cache_root: Path
    listener: Listener
    build: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A third-party file set inside the bundle, for the bill of materials. `licence` is an SPDX expression or a name,
    `licence_text` what NOTICES repeats; `sha256` is that of the vendored file.
    """

    name: str
    version: str
    licence: str
    licence_text: str
    purl: str
    sha256: str | None
    file: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """What was written: `payload` is the folder (relative, forward slashes, `.` for the root) that holds `runtime.json`,
    `golden/` and the models, or None when a packed format hides it; `components` what was vendored; `package` the name that users import.
    """

    payload: str | None
    package: str
    components: tuple[Component, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantProof:
    """One variant's run of the golden set. `figures` holds seconds and other values that vary (they go to the report,
    never into the bundle). `passed` is None when it did not run; `reason` then says why.
    """

    variant: str
    level: Proof
    passed: bool | None
    comparison: Comparison | None
    reason: str
    figures: Mapping[str, float]


class Emitter(Protocol):
    """One ecosystem."""

    name: str
    formats: Mapping[str, str]
    """Formats that it can pack, each with one line of explanation; the first is the default."""

    def emit(self, request: EmitRequest, folder: Path) -> Emitted:
        """Write the ecosystem's project into the empty `folder`. Raises `BundlerError`."""
        ...

    def prove(self, bundle: Path, cache_root: Path, listener: Listener) -> tuple[VariantProof, ...]:
        """Run the golden set in the bundle's own runtime, in a fresh environment with no index."""
        ...
