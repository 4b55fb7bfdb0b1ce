"""`bundle.json`: what a bundle is made of, from what, and how far it was proven. The schema is this file."""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bundler.model.artifacts import FileRecord
from bundler.model.codec import parse_json
from bundler.model.errors import UsageError, VerificationError
from bundler.model.golden_inputs import Weakness
from bundler.model.plan import Decision
from bundler.model.proof import Proof, RanOn
from bundler.model.runtime import SOLE, Gate, ProviderEntry
from bundler.model.stage import Note

MANIFEST_NAME = "bundle.json"
MANIFEST_SCHEMA = 4
MANIFEST_BYTES = 64_000_000
"""No manifest of ours comes near this; a larger file is refused before it fills the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeRecord:
    """The inference runtime that the bundle ships."""

    package: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """The model as the user handed it in; `size` in bytes, external data included."""

    name: str
    digest: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRecord:
    """The target, and the digest of its resolved profile."""

    id: str
    title: str
    profile_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantRecord:
    """One variant as `runtime.json` opens it; `size` is that of its files in bytes."""

    name: str
    model: str
    size: int
    providers: tuple[ProviderEntry, ...]
    session: Mapping[str, Any]
    session_config: Mapping[str, str]
    disabled_optimizers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRecord:
    """One step that was taken. `environment` is its name, `versions` the tools in it and its compiler, `artifact` and
    `size` what it made (None where it made nothing). `key` is a digest of the stage, its sources, tools, options and
    inputs: the cache key without the machine. Seconds and paths are left out: they vary from run to run.
    """

    step: str
    stage: str
    variant: str | None
    options: Mapping[str, Any]
    environment: str
    versions: Mapping[str, str]
    key: str
    artifact: str | None
    size: int | None
    facts: Mapping[str, Any]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRecord:
    """What the bundle ships of a step: `kind`, `step` and `variant` are those of `bundler.model.plan.PlannedArtifact`;
    `digest` is over all its files, `size` in bytes.
    """

    kind: str
    step: str
    variant: str | None
    digest: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputCheck:
    """One output against the golden set, in the output's own unit. A figure that is missing or not finite is None, and
    `remark` says why in words. The figures are those of `bundler.model.results.OutputComparison`; `elements`, `scores`
    and `unjudged` are those of `bundler.model.reference.ReferenceFigures`. Of a stream, `step_sqnr_db` is the ratio of
    each step (None: no noise, or no signal); one value stands for `steps_each` steps, the lowest of them.
    """

    name: str
    equal: bool
    max_absolute: float | None
    mean_absolute: float | None
    max_relative: float | None
    cosine: float | None
    sqnr_db: float | None
    top1_agreement: float | None
    remark: str | None = None
    agreement: float | None = None
    worst_sample: str = ""
    worst_sqnr_db: float | None = None
    low_sqnr_db: float | None = None
    typical_sqnr_db: float | None = None
    elements: int = 0
    scores: bool = False
    unjudged: str = ""
    step_sqnr_db: tuple[float | None, ...] = ()
    steps_each: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRecord:
    """The comparison that followed a stage which changes the model (`after` is that step's id)."""

    step: str
    after: str
    variant: str | None
    samples: int
    equal: bool
    outputs: tuple[OutputCheck, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenOutput:
    """One output in the golden set: how many values it has over all samples, and why no comparison with them
    could fail (empty where one could).
    """

    name: str
    elements: int
    unjudged: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenRecord:
    """What every runtime of the bundle is held to. `inputs` says what they are: `samples` that the user gave, `seeded`
    ones, or seeded ones in place of samples (`like-samples`; empty in older bundles). `judging` counts the samples that
    the gates were held on, where these are not the golden set's own inputs. The samples of a `stream` are its steps.
    `sizes` are those of open dimensions that seeded inputs have, by what people call the dimension.
    """

    samples: int
    outputs: tuple[GoldenOutput, ...] = ()
    weaknesses: tuple[Weakness, ...] = ()
    inputs: Literal["samples", "seeded", "like-samples", ""] = ""
    judging: int = 0
    stream: bool = False
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def unjudged(self) -> dict[str, str]:
        """The outputs that no comparison could fail, each with the reason."""
        return {output.name: output.unjudged for output in self.outputs if output.unjudged}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRecord:
    """What had to be met: `gates` by the comparison's step, where a variant's last is the one that its loader obeys.
    `passed` is None when nothing was compared.
    """

    passed: bool | None
    gates: Mapping[str, Gate] = field(default_factory=dict)
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantProofRecord:
    """How far one variant was proven, where (empty: on the machine itself), and why not further. `stand_in` says that
    another host ran it in place of the device, whatever level that came to; `means`, `unrun` and `ran_on` are those of
    `bundler.model.proof.VariantProof` (None: it did not run, or an older bundler wrote this).
    """

    variant: str
    level: Proof
    passed: bool | None
    reason: str
    component: str = SOLE
    place: str = ""
    stand_in: bool = False
    means: str = ""
    unrun: tuple[str, ...] = ()
    ran_on: RanOn | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRecord:
    """How far the bundle was proven: `level` is the least of its variants' levels, so it claims nothing that one of
    them lacks.
    """

    level: Proof
    reason: str
    variants: tuple[VariantProofRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentRecord:
    """One model of the bundle. `shortfalls` are sentences on variants whose accelerator takes fewer nodes than the
    profile asks for. `golden` counts what was judged (None in bundles of schema 2); `stages` are in the order of the
    plan.
    """

    name: str
    model: ModelRecord
    synthetic_inputs: bool
    unstable_outputs: tuple[str, ...]
    variants: tuple[VariantRecord, ...]
    stages: tuple[StageRecord, ...]
    decisions: tuple[Decision, ...]
    checks: tuple[CheckRecord, ...]
    gate: GateRecord
    reservations: tuple[str, ...] = ()
    shortfalls: tuple[str, ...] = ()
    golden: GoldenRecord | None = None
    artifacts: tuple[ArtifactRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineMetricRecord:
    """The user's measure of a pipeline's answers, the function `function` in the file with digest `sha256`: `value`,
    and `reference` for the original models' answers. It had to be at least `least`, and at most `drop` below these.
    """

    function: str
    sha256: str
    value: float
    reference: float
    least: float | None
    drop: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRecord:
    """What the user's own pipeline, the function `function` in the file with digest `sha256`, answered with one variant
    of each component: those called `variant`, and of a component that has none of this name its last. `equal` of its
    answers on `samples` were those of the original models, where numbers may differ by `absolute` and `relative` times
    the original's, and a share `least` had to be; `max_absolute` is the largest difference of two numbers. No sample
    called the components `uncalled`; of those `unnoticed` other outputs (reversed, negated, zeros) changed no answer.
    With a `metric` of the user's and `least` 0, that alone judged. `files` are the digests of
    what the function imports and reads of its own folder, by path; `requires` are the packages that it imports, as
    requirements: the bundle does not contain them.
    """

    variant: str
    function: str
    sha256: str
    samples: int
    equal: int
    least: float
    max_absolute: float
    absolute: float
    relative: float
    uncalled: tuple[str, ...] = ()
    unnoticed: tuple[str, ...] = ()
    metric: PipelineMetricRecord | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    requires: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The whole of `bundle.json`. `name` is the bundle's, which `target` is not part of. `files` lists every file of
    the bundle but the manifest itself, by path; `payload` is the folder of `runtime.json` (None where a packed format
    hides it); `budget_mb` holds limits in 1,000,000 bytes. `archives` lists, for each archive that bundler wrote, the
    files in it with their bytes (older bundles have none).
    """

    schema: int
    bundler: str
    name: str
    runtime: RuntimeRecord
    target: TargetRecord
    ecosystem: str
    format: str
    package: str
    payload: str | None
    components: tuple[ComponentRecord, ...]
    files: tuple[FileRecord, ...]
    proof: ProofRecord
    budget_mb: Mapping[str, float] = field(default_factory=dict)
    pipeline: tuple[PipelineRecord, ...] = ()
    archives: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def sole(self) -> ComponentRecord | None:
        """The component of a bundle of one model; None where there are several."""
        return self.components[0] if len(self.components) == 1 else None

    def label(self, component: str, name: str) -> str:
        """The name of a variant or a step as people read it: with its component where there are several."""
        return name if self.sole else f"{component}/{name}"

    def component(self, name: str) -> ComponentRecord:
        """The component with this name. Raises `KeyError`."""
        for component in self.components:
            if component.name == name:
                return component
        raise KeyError(name)

    @property
    def reservations(self) -> tuple[str, ...]:
        """Why the bundle must not be shipped; there are none where it may."""
        return self._gather(lambda component: component.reservations)

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """Sentences on variants whose accelerator takes fewer nodes than the profile asks for."""
        return self._gather(lambda component: component.shortfalls)

    def _gather(self, read: Callable[[ComponentRecord], tuple[str, ...]]) -> tuple[str, ...]:
        """What is said of the components, with their names where there are several."""
        return tuple(
            text if self.sole else f"{component.name}: {text}"
            for component in self.components
            for text in read(component)
        )

    @property
    def size(self) -> int:
        """Bytes of all listed files."""
        return sum(record.size for record in self.files)


def load_manifest_data(bundle: Path) -> dict[str, Any]:
    """The JSON object in a bundle's manifest, its schema number checked and nothing else.

    Raises `VerificationError` when there is none, when it is no JSON object, or when a newer bundler wrote it.
    """
    return parse_manifest(bundle, read_manifest_bytes(bundle))


def parse_manifest(bundle: Path, content: bytes) -> dict[str, Any]:
    """As `load_manifest_data`, from bytes that were read already: what is checked and what is used are the same."""
    path = bundle / MANIFEST_NAME
    try:
        data = parse_json(content.decode("utf-8"), strict=True)
    except ValueError as error:
        raise _malformed(path, str(error)) from error
    if not isinstance(data, dict):
        raise _malformed(path, "it is not a JSON object")
    schema = data.get("schema")
    if type(schema) is not int or schema < 1:
        raise _malformed(path, f"its schema number is {schema!r}"[:200])
    if schema > MANIFEST_SCHEMA:
        raise VerificationError(
            f"{path} has schema {schema}; this bundler reads up to {MANIFEST_SCHEMA}",
            hint="install a newer bundler, or build the bundle again with this one",
        )
    return data


def read_manifest_bytes(bundle: Path) -> bytes:
    """The bytes of a bundle's manifest: a regular file of bounded size. Raises `VerificationError`."""
    path = bundle / MANIFEST_NAME
    if path.parent.is_file():
        raise UsageError(
            f"{path.parent} is a file, not a bundle",
            hint="give the folder that `bundler build` wrote; it holds bundle.json",
        )
    if path.is_symlink():
        raise VerificationError(
            f"{path} is a symbolic link", hint="the manifest of a bundle must be a regular file: copy the bundle again"
        )
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # reading a pipe would wait for somebody to write
            raise _malformed(path, "it is not a regular file")
        if status.st_size > MANIFEST_BYTES:
            raise _malformed(path, f"it is larger than {MANIFEST_BYTES:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise VerificationError(
            f"{path.parent} is not a bundle: its manifest cannot be read",
            details=(f"{path.name}: {error.strerror or error}" if path.parent.is_dir() else "there is no such folder",),
            hint=_name_bundles(path.parent) or "give the folder that `bundler build` wrote; it holds bundle.json",
        ) from error


MOST_NAMED = 3
"""Bundles that a hint names."""


def _name_bundles(folder: Path) -> str:
    """The bundles in a folder of several, which is what was given; empty where there are none."""
    try:
        found = sorted(str(path.parent) for path in folder.glob(f"*/{MANIFEST_NAME}"))
    except (OSError, ValueError):
        return ""
    return f"name the bundle in it: {' or '.join(found[:MOST_NAMED])}" if found else ""


def _malformed(path: Path, why: str) -> VerificationError:
    return VerificationError(
        f"{path} is not a manifest of a bundle",
        details=(why,),
        hint="the bundle is damaged: copy it again, or build it again",
    )
