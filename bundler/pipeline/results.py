"""What a caller gets."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bundler.model.attempts import RecordedChoice
from bundler.model.errors import BundlerError
from bundler.model.manifest import GoldenRecord, PipelineRecord, ProofRecord
from bundler.model.plan import BuildPlan
from bundler.model.proof import Proof, VariantProof
from bundler.model.results import Comparison
from bundler.model.runtime import SOLE, Tolerance
from bundler.pipeline.requests import BuildRequest


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
    """The user's own measure of a variant, and of the original model's outputs."""

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
    to, and `rounding` what it computes in, where that is another limit than `limit`. Samples that are steps of a
    `stream` may drift: the lowest SQNR of the first and of the last quarter of them, where the last is clearly lower.
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
    stream: bool = False
    drift: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementResult:
    """How many nodes of a variant's graph are assigned to its accelerator, of all that compute; `estimated` where
    nothing was compiled for it here, by the table of operators of `estimated_by`. `least_share` is what the profile
    requires; `gain` says what fixed sizes would gain, empty where nothing is known to.
    """

    variant: str
    provider: str
    assigned: int
    total: int
    estimated: bool
    least_share: float
    gain: str = ""
    estimated_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedRun:
    """The comparison of the bundle's own runtime with the golden set, and where it ran (empty: on this machine)."""

    variant: str
    place: str
    comparison: Comparison
    component: str = SOLE


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBundle:
    """What is known of a bundle once it is written, and stays so while it stands.

    `digest` is the SHA-256 of `bundle.json`, which lists that of every file; sizes are in bytes. `proof` is the lowest
    of `proofs`, the variants' own levels (none without a proof); `unproven` says why the others were not run, and
    `verified` says all of it in words. `golden` is the manifest's record of the golden set; `reservations` say why the
    bundle must not be shipped. `pipeline` is what the user's own pipeline answered with each variant. `first_visits`
    are for what is visited rather than installed.
    """

    digest: str
    proof: Proof
    proofs: Mapping[str, Proof]
    unproven: Mapping[str, str]
    verified: tuple[str, ...]
    bundle_bytes: int
    model_bytes: int
    notes: tuple[str, ...]
    golden: GoldenRecord | None
    reservations: tuple[str, ...]
    metrics: tuple[MetricResult, ...]
    pipeline: tuple[PipelineRecord, ...]
    first_visits: tuple[FirstVisit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSummary(WrittenBundle):
    """What a rebuild with nothing changed repeats; `runs` are those of the bundle's own runtime."""

    runs: tuple[VerifiedRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult(WrittenBundle):
    """A finished bundle. `up_to_date` says that nothing had changed and nothing was written; `decisions` are what was
    measured, by variant.
    """

    name: str
    target: str
    bundle: Path
    report: Path
    format: str
    up_to_date: bool
    source_bytes: int
    seconds: float
    precisions: tuple[ChosenPrecision, ...]
    placements: tuple[PlacementResult, ...]
    accuracies: tuple[AccuracyResult, ...]
    decisions: Mapping[str, RecordedChoice]


class BuildsInterruptedError(KeyboardInterrupt):
    """The user stopped several builds: `finished` of `total` are done."""

    def __init__(self, finished: Sequence[BuildResult], total: int) -> None:
        super().__init__()
        self.finished, self.total = tuple(finished), total


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A build or a plan that failed while others of the same call may have succeeded."""

    request: BuildRequest
    error: BundlerError

    @property
    def located_error(self) -> BundlerError:
        """The error, with the line of the project file that asks for this build."""
        located = copy.copy(self.error)
        located.message = f"{self.request.where}{self.error.message}"
        return located

    def to_json(self) -> dict[str, object]:
        """The entry of `--json`."""
        return {**self.request.name_models(), "target": self.request.target, "error": self.error.to_json()}


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
    """A bundle whose files match its `bundle.json`, which has the SHA-256 `digest`. `removed` counts files of Python's
    byte code that were deleted from it.
    """

    bundle: Path
    files: int
    digest: str
    removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult:
    """What `verify` found. `proof` is the level that was reached now, `claimed` the manifest's; of `unstable_outputs`,
    which a random operator makes differ on each run, only names, types and shapes are promised. `reservations` say why
    the bundle must not be shipped. `reached` is all of what was reached now, `built` what was when it was built.
    `digest` is the SHA-256 of `bundle.json`; `left_out` says which variants of the target the bundle has not, and
    `shortfalls` which take fewer nodes than was asked for; `removed` is that of `DigestResult`; `samples` says in words
    what the figures are of.
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
    removed: int = 0
    samples: tuple[str, ...] = ()

    def label(self, proof: VariantProof) -> str:
        """The variant's name as people read it: with its component where there are several."""
        several = len({variant.component for variant in self.variants}) > 1
        return f"{proof.component}/{proof.variant}" if several else proof.variant
