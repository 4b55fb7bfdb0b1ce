"""What a caller asks for, and what it gets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bundler.model.errors import UsageError
from bundler.model.manifest import ProofRecord
from bundler.model.plan import BuildPlan
from bundler.model.proof import Proof, VariantProof
from bundler.model.runtime import Tolerance
from bundler.model.shapes import Shape
from bundler.planning.data import GoldenKind

MAXIMUM_NAME = 64
"""Characters of a bundle's name: with the target and file names it stays below what file systems take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """One model for one target.

    `output` is the folder in which the bundle's folder `<name>-<target>` is made. `overrides` are
    `dotted.key=value` over the profile. `version` is that of the emitted package, and `package_name` its name
    (None: it is made from the bundle's), in which `{model}` and `{target}` stand for the bundle's name and the
    target's id. `samples` and `calibration` are what `--samples` and `--calibration` take, `preprocessing` the
    declaration for folders of images, sound or text. `dimensions` fixes sizes by their name, `shapes` by input.
    `format` None takes the profile's. `prove` runs the golden set in the bundle's own runtime and measures it; without
    it the manifest claims no more than `resolved`. `browser` is the one to prove web bundles in (None: the one that is
    found). `decisions` are what was measured before, by `decision_key` and variant; with `locked` nothing new is
    measured. `trust_target` lets the target's file name programs that run (its `accuracy.metric`).
    `project` is the name of the project file that asks (empty: a command does).
    `golden` says what the bundle carries of `samples`: themselves, or seeded inputs like them.
    """

    model: Path
    target: str
    output: Path = Path("dist")
    name: str | None = None
    version: str = "1.0.0"
    package_name: str | None = None
    samples: str | Path | None = None
    calibration: str | Path | None = None
    preprocessing: Path | None = None
    dimensions: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    format: str | None = None
    prove: bool = True
    browser: Path | None = None
    seed: int = 0
    synthetic_count: int = 8
    decisions: Mapping[str, Any] = field(default_factory=dict)
    locked: bool = False
    trust_target: bool = False
    golden: GoldenKind = "samples"
    project: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstVisit:
    """What a visitor downloads at first for a variant on one build of the runtime: bytes plain, by gzip, by brotli."""

    variant: str
    build: str
    size: int
    gzip: int
    brotli: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenPrecision:
    """What an automatic choice gave a variant. `ratio` is its latency beside the unchanged model's; `doubt` says why
    that shows nothing, empty where it does.
    """

    variant: str
    method: str
    ratio: float | None
    timing: str
    doubt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricResult:
    """The user's own measure of a variant, and of the untouched model's answers."""

    variant: str
    value: float
    reference: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyResult:
    """How close a variant came to the original model, in the last comparison that its gate judged. The figures are
    those of `output`, of all outputs the nearest to its limits (`bundler.model.results.OutputComparison`); `limit` is
    what it was held to. `unjudged` counts the outputs that no comparison could fail; `in_place_of` names the provider
    for which another ran the model in this comparison, empty where it was the variant's own. `place` says where the
    bundle's own runtime ran, where these are its figures (`in Chromium 143`). `device_limit` is what the device is held
    to, and `rounding` what it computes in, where that is another limit than `limit`.
    """

    variant: str
    samples: int
    outputs: int
    unjudged: int
    output: str
    equal: bool
    max_absolute: float
    sqnr_db: float | None
    worst_sqnr_db: float | None
    top1_agreement: float | None
    agreement: float | None
    limit: Tolerance
    in_place_of: str = ""
    place: str = ""
    typical_sqnr_db: float | None = None
    device_limit: Tolerance | None = None
    rounding: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementResult:
    """How many nodes of a variant's graph its accelerator took, of all that compute; `estimated` where nothing was
    compiled for it here. `least_share` is what the profile asks for; `gain` says what fixed sizes would gain, empty
    where nothing is known to.
    """

    variant: str
    provider: str
    taken: int
    total: int
    estimated: bool
    least_share: float
    gain: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """A finished bundle. `up_to_date` says that nothing had changed and nothing was written; sizes in bytes.
    `golden` is the manifest's record of the golden set. `first_visits` are for what is visited rather than installed;
    `reservations` say why it must not be shipped; `decisions` are what was measured, by variant. `proof` is the least
    of `proofs`, the variants' own levels (none without a proof); `unproven` says of those that were not run why;
    `verified` says all of it in words. `digest` is the SHA-256 of `bundle.json`, which lists that of every file.
    """

    name: str
    target: str
    bundle: Path
    report: Path
    format: str
    proof: Proof
    up_to_date: bool
    bundle_bytes: int
    model_bytes: int
    source_bytes: int
    notes: tuple[str, ...]
    seconds: float
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    unproven: Mapping[str, str] = field(default_factory=dict)
    verified: tuple[str, ...] = ()
    first_visits: tuple[FirstVisit, ...] = ()
    precisions: tuple[ChosenPrecision, ...] = ()
    metrics: tuple[MetricResult, ...] = ()
    placements: tuple[PlacementResult, ...] = ()
    accuracies: tuple[AccuracyResult, ...] = ()
    golden: Mapping[str, Any] = field(default_factory=dict)
    reservations: tuple[str, ...] = ()
    decisions: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPreview:
    """One line of `bundler plan`: a step and whether it would run."""

    id: str
    title: str
    state: str
    reason: str
    environment: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """What a build would do, and which of it is in the cache."""

    plan: BuildPlan
    steps: tuple[StepPreview, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestResult:
    """A bundle whose files match its `bundle.json`, which has the SHA-256 `digest`."""

    bundle: Path
    files: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult:
    """What `verify` found. `proof` is the level that was reached now, `claimed` the manifest's; of `unstable_outputs`,
    which a random operator makes differ on each run, only names, types and shapes are promised. `reservations` say why
    the bundle must not be shipped. `reached` is all of what was reached now, `built` what was when it was built.
    `digest` is the SHA-256 of `bundle.json`; `left_out` says which variants of the target the bundle has not, and
    `shortfalls` which take fewer nodes than was asked for.
    """

    bundle: Path
    files: int
    proof: Proof
    claimed: Proof
    variants: tuple[VariantProof, ...]
    unstable_outputs: tuple[str, ...] = ()
    reservations: tuple[str, ...] = ()
    reached: ProofRecord | None = None
    built: ProofRecord | None = None
    digest: str = ""
    left_out: tuple[str, ...] = ()
    shortfalls: tuple[str, ...] = ()


def decision_key(name: str, target: str) -> str:
    """Under which what was decided by measuring is kept, for a bundle's name and a target's id."""
    return f"{name}-{target}"


def bundle_name(request: BuildRequest) -> str:
    """The bundle's name: as given, else the model file's stem, reduced to letters, digits, `.`, `_` and `-`."""
    if request.name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", request.name):
        raise UsageError(
            f"{request.name!r} cannot be the name of a bundle",
            hint="use up to 64 letters, digits, '.', '_' and '-', beginning with a letter or digit",
        )
    stem = request.name or request.model.stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:MAXIMUM_NAME] or "model"
