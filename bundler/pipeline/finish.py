"""From finished artifacts to a whole, verified bundle in its staging folder, and the report beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bundler.emitters.contract import EmitRequest, Emitter, ProofRequest, Untimed
from bundler.emitters.registry import find_emitter
from bundler.emitters.verified import write_verification
from bundler.emitters.writing import write_text
from bundler.model.digests import digest_file
from bundler.model.errors import BundlerError, GateError, StageError, VerificationError
from bundler.model.events import Reporter, StepFinished, StepsEnded, StepStarted
from bundler.model.manifest import MANIFEST_NAME, GateRecord, Manifest, ModelRecord, RuntimeRecord
from bundler.model.measurement import USUAL, Measurement, Timing
from bundler.model.plan import MODEL, variant_artifacts
from bundler.model.proof import Download, Emitted, VariantProof
from bundler.model.results import StepOutcome
from bundler.model.runtime import RuntimeConfig
from bundler.pipeline.golden import describe_golden, record_golden
from bundler.pipeline.judging import METRIC_STAGE
from bundler.pipeline.measuring import choose_timing, explain_too_slow
from bundler.pipeline.placement import describe_shortfalls
from bundler.pipeline.prepare import Prepared, describe_left_out
from bundler.pipeline.results import BuildSummary, FirstVisit, MetricResult, VerifiedRun
from bundler.pipeline.workspace import Workspace
from bundler.planning.data import CALIBRATED
from bundler.reporting.data import ReportData
from bundler.reporting.manifest import ManifestRequest, make_manifest, write_manifest
from bundler.reporting.notices import NOTICES_NAME, render_notices
from bundler.reporting.report import write_report as write_report_files
from bundler.reporting.sbom import SBOM_NAME, render_sbom
from bundler.stages.measure_metric.spec import Facts as MetricFacts
from bundler.stages.record_golden.spec import Facts as GoldenFacts
from bundler.verification.proof import combine_proofs, unjudged_of
from bundler.verification.words import BUILDING_HOST, describe_verification

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishRequest:
    """What was prepared and executed, and the staging folder that the bundle is written into."""

    prepared: Prepared
    config: RuntimeConfig
    outcomes: Mapping[str, StepOutcome]
    staged: Path
    workspace: Workspace
    reporter: Reporter


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A whole bundle in its staging folder. `summary` is what a rebuild with nothing changed repeats."""

    manifest: Manifest
    proofs: tuple[VariantProof, ...]
    measurements: tuple[Measurement, ...]
    phases: Mapping[str, float]
    summary: BuildSummary
    downloads: tuple[Download, ...] = ()


def finish_bundle(request: FinishRequest) -> Finished:
    """Emit, describe and verify. Raises `GateError` over a budget, `VerificationError` when the verification fails."""
    phases: dict[str, float] = {}
    with _timed(request, phases, "emit"):
        emitted = _emit(request)
        _write_notices(request, emitted)
    for text in emitted.notes:
        request.reporter.say(text)
    manifest, size = _write_manifest(request, emitted)
    _check_budget(request, size, emitted.downloads)
    proofs: tuple[VariantProof, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    if request.prepared.request.prove:
        with _timed(request, phases, "prove"):
            proofs = _prove(request)
        manifest = replace(manifest, proof=combine_proofs(proofs, unjudged_of(manifest)))
    manifest, size = _describe_verification(request, manifest)
    _check_budget(request, size, emitted.downloads)  # Again: what was verified makes the manifest longer.
    if _is_timed(request, proofs):
        with _timed(request, phases, "measure"):
            measurements = _measure(request)
    if not measurements:
        phases.pop("measure", None)
    return Finished(
        manifest=manifest,
        proofs=proofs,
        measurements=measurements,
        phases=phases,
        downloads=emitted.downloads,
        summary=_summarize(request, manifest, size, emitted, proofs),
    )


def _describe_verification(request: FinishRequest, manifest: Manifest) -> tuple[Manifest, int]:
    """Put what was verified into the README, which was written before, and both into the manifest. Returns it with the
    bytes of the bundle.
    """
    golden = (describe_golden(manifest.golden),) if manifest.golden else ()
    lines = (*describe_verification(manifest.proof, BUILDING_HOST), *manifest.shortfalls, *golden)
    changed = write_verification(request.staged, lines)
    if changed is not None:
        files = tuple(changed if record.path == changed.path else record for record in manifest.files)
        manifest = replace(manifest, files=files)
    return manifest, write_manifest(request.staged, manifest)


_PHASES = {"emit": "Write the bundle", "prove": "Verify the bundle", "measure": "Time the bundle"}
"""The phases after the plan's steps, and their titles."""


@contextmanager
def _timed(request: FinishRequest, phases: dict[str, float], name: str) -> Iterator[None]:
    """Add the seconds of a block to `phases`, and report it like a step."""
    build, title, listener = request.reporter.build, _PHASES[name], request.reporter.listener
    listener(StepStarted(build=build, step=name, title=title, position=0, total=0))
    began = time.perf_counter()
    try:
        yield
    except BundlerError:
        listener(StepsEnded(build=build))
        raise
    phases[name] = seconds = time.perf_counter() - began
    listener(StepFinished(build=build, step=name, title=title, cached=False, seconds=seconds))


def _emit(request: FinishRequest) -> Emitted:
    prepared, outcomes = request.prepared, request.outcomes
    golden = outcomes[prepared.plan.golden].folder
    if golden is None:
        raise VerificationError(f"{prepared.title}: the golden set was not recorded")
    emission = EmitRequest(
        config=request.config,
        facts=prepared.facts,
        profile=prepared.profile,
        format=prepared.plan.format,
        version=prepared.request.version,
        package_name=prepared.request.package_name,
        artifacts={
            variant.name: tuple(outcomes[artifact.step] for artifact in variant_artifacts(variant))
            for variant in prepared.plan.variants
        },
        golden=golden,
        environments=request.workspace.environments,
        reporter=request.reporter,
        left_out=tuple(f"{decision.subject}: {decision.reason}" for decision in prepared.settled.left_out),
    )
    return find_emitter(prepared.plan.emitter).emit(emission, request.staged)


def _write_notices(request: FinishRequest, emitted: Emitted) -> None:
    prepared, config, staged = request.prepared, request.config, request.staged
    name = f"{prepared.plan.model_name}-{prepared.profile.id}"
    runtime = RuntimeRecord(package=prepared.profile.runtime.package, version=prepared.profile.runtime.version)
    model = ModelRecord(name=config.model, digest=config.model_digest, size=prepared.facts.total_bytes)
    bill = render_sbom(
        name=name,
        version=prepared.request.version,
        config=config,
        model=model,
        runtime=runtime,
        components=emitted.dependencies,
    )
    write_text(staged / SBOM_NAME, bill)
    write_text(staged / NOTICES_NAME, render_notices(name, emitted.dependencies))


def _write_manifest(request: FinishRequest, emitted: Emitted) -> tuple[Manifest, int]:
    """The manifest before anything is verified, and the bytes of the bundle with it."""
    prepared, outcomes = request.prepared, request.outcomes
    budget = prepared.profile.budget
    limits = {"model": budget.model_mb, "bundle": budget.bundle_mb, "download": budget.download_mb}
    described = ManifestRequest(
        plan=prepared.plan,
        profile=prepared.profile,
        facts=prepared.facts,
        config=request.config,
        emitted=emitted,
        known=_known_digests(request, emitted),
        outcomes=(*prepared.earlier, *outcomes.values()),
        gate=GateRecord(
            gates=prepared.plan.gates,
            passed=True,
            budget_mb={name: limit for name, limit in limits.items() if limit is not None},
        ),
        proof=combine_proofs(()),
        golden=record_golden(prepared.plan, outcomes, request.config),
        synthetic_inputs=outcomes[prepared.plan.golden].read_facts(GoldenFacts).synthetic,
        reservations=_reservations(prepared),
        shortfalls=describe_shortfalls(prepared.plan, outcomes),
    )
    manifest = make_manifest(request.staged, described)
    return manifest, write_manifest(request.staged, manifest)


def _reservations(prepared: Prepared) -> tuple[str, ...]:
    """Why the bundle must not be shipped."""
    data = prepared.plan_request.calibration
    calibrated = any(step.id == CALIBRATED for step in prepared.plan.steps)
    if calibrated and data is not None and data.synthetic:
        return ("calibrated with synthetic inputs: its ranges are not those of real data",)
    return ()


def _known_digests(request: FinishRequest, emitted: Emitted) -> dict[str, str]:
    """Digests of what was copied from where it is kept by digest: vendored files and, in the open, the models."""
    known = {part.file: part.sha256 for part in emitted.dependencies if part.file and part.sha256}
    if emitted.payload is not None:
        files = [record for variant in request.config.variants for record in variant.files]
        known |= {f"{emitted.payload}/{record.path}": record.sha256 for record in files}
    return known


def _weigh_models(request: FinishRequest) -> dict[str, int]:
    """Bytes of each variant's model, without its companions."""
    artifacts = {variant.name: request.outcomes[variant.model].artifact for variant in request.prepared.plan.variants}
    return {name: artifact.size if artifact else 0 for name, artifact in artifacts.items()}


def _check_budget(request: FinishRequest, size: int, downloads: tuple[Download, ...]) -> None:
    prepared = request.prepared
    budget = prepared.profile.budget
    models = _weigh_models(request)
    over = [
        f"model of variant {name}: {size / MEGABYTE:.2f} MB, budget {budget.model_mb:g} MB"
        for name, size in models.items()
        if budget.model_mb is not None and size > budget.model_mb * MEGABYTE
    ]
    if budget.bundle_mb is not None and size > budget.bundle_mb * MEGABYTE:
        over.append(f"bundle: {size / MEGABYTE:.2f} MB, budget {budget.bundle_mb:g} MB")
    over += [
        f"download of variant {item.variant} ({item.build}): {item.brotli / MEGABYTE:.2f} MB with brotli, "
        f"budget {budget.download_mb:g} MB"
        for item in downloads
        if budget.download_mb is not None and item.brotli > budget.download_mb * MEGABYTE
    ]
    if over:
        raise GateError(
            f"{prepared.title}: over the size budget",
            details=tuple(over),
            hint="raise it with --set budget.model_mb=…, budget.bundle_mb=… or budget.download_mb=…; "
            "for Python, --python 3.12 makes a bundle of one version alone",
        )


def _prove(request: FinishRequest) -> tuple[VariantProof, ...]:
    prepared = request.prepared
    proofs = find_emitter(prepared.plan.emitter).prove(_proof_request(request))
    failed = [proof for proof in proofs if proof.passed is False]
    if failed:
        raise VerificationError(
            f"{prepared.title}: the bundle did not reproduce its golden set in its own runtime",
            details=tuple(f"{proof.variant}: {proof.reason}" for proof in failed),
            hint="nothing was put into place; --set optimization.level=basic optimises less, and where a device rounds "
            "more than the gate allows, --set accuracy.sqnr_db=… widens it",
        )
    for proof in proofs:
        if proof.passed is None:
            request.reporter.say(f"{proof.variant} not run: {proof.reason}")
    return proofs


def _is_timed(request: FinishRequest, proofs: Sequence[VariantProof]) -> bool:
    """Whether the bundle is timed; where only the time is missing, a line says so."""
    if not request.prepared.request.prove or isinstance(find_emitter(request.prepared.plan.emitter), Untimed):
        return False
    too_slow = explain_too_slow(request.prepared.request, proofs)
    if too_slow:
        request.reporter.say(f"not timed: {too_slow}")
    return not too_slow


def _measure(request: FinishRequest) -> tuple[Measurement, ...]:
    """Load time and latency beside the original model's, where this machine can run the bundle."""
    timing = choose_timing(request.prepared.request)
    return find_emitter(request.prepared.plan.emitter).measure(_proof_request(request, timing))


def _proof_request(request: FinishRequest, timing: Timing = USUAL) -> ProofRequest:
    prepared = request.prepared
    model = prepared.sources[MODEL].path
    return request.workspace.request_proof(
        request.staged, request.reporter.listener, prepared.request.on, model, timing
    )


def list_notes(prepared: Prepared, outcomes: Mapping[str, StepOutcome], emitted: Sequence[str]) -> list[str]:
    """Every note of the build, each once: on variants left out, of the plan, of the steps before it and in it, on
    accelerators with too few nodes, and those of the emitter.
    """
    steps = (*prepared.earlier, *outcomes.values())
    notes = [*prepared.plan.notes, *(note for outcome in steps for note in outcome.notes)]
    shortfalls = describe_shortfalls(prepared.plan, outcomes)
    left_out = describe_left_out(prepared.settled.left_out)
    return list(dict.fromkeys((*left_out, *(note.text for note in notes), *shortfalls, *emitted)))


def _summarize(
    request: FinishRequest, manifest: Manifest, size: int, emitted: Emitted, proofs: Sequence[VariantProof]
) -> BuildSummary:
    records = manifest.proof.variants
    return BuildSummary(
        digest=digest_file(request.staged / MANIFEST_NAME),
        proof=manifest.proof.level,
        proofs={record.variant: record.level for record in records},
        unproven={record.variant: record.reason for record in records if not record.passed},
        verified=tuple(describe_verification(manifest.proof)),
        bundle_bytes=size,
        model_bytes=next(iter(_weigh_models(request).values())),
        notes=tuple(list_notes(request.prepared, request.outcomes, emitted.notes)),
        golden=manifest.golden,
        reservations=manifest.reservations,
        metrics=tuple(_list_metrics(request)),
        first_visits=tuple(
            FirstVisit(variant=item.variant, build=item.build, size=item.size, gzip=item.gzip, brotli=item.brotli)
            for item in emitted.downloads
        ),
        runs=tuple(
            VerifiedRun(variant=proof.variant, place=proof.place, comparison=proof.comparison)
            for proof in proofs
            if proof.passed and proof.comparison
        ),
    )


def _list_metrics(request: FinishRequest) -> Iterator[MetricResult]:
    for step in request.prepared.plan.steps:
        if step.stage == METRIC_STAGE:
            facts = request.outcomes[step.id].read_facts(MetricFacts)
            yield MetricResult(variant=step.variant or "", value=facts.value, reference=facts.reference)


def write_report(prepared: Prepared, outcomes: Mapping[str, StepOutcome], finished: Finished, folder: Path) -> Path:
    """Write the report of a finished bundle; returns the page. Raises `StageError` when the disk refuses it."""
    data = ReportData(
        plan=prepared.plan,
        outcomes=(*prepared.earlier, *outcomes.values()),
        facts=prepared.settled.facts,
        asker=prepared.plan_request.asker,
        manifest=finished.manifest,
        bundle_bytes=finished.summary.bundle_bytes,
        proofs=finished.proofs,
        measurements=finished.measurements,
        unmeasured=explain_too_slow(prepared.request, finished.proofs)
        or explain_unmeasured(finished.proofs, find_emitter(prepared.plan.emitter)),
        is_brief=not prepared.request.measure,
        assignments={proof.variant: proof.nodes for proof in finished.proofs if proof.nodes},
        phases=finished.phases,
        downloads=finished.downloads,
        frontiers=prepared.frontiers,
        log=tuple(_log_lines(outcomes)),
    )
    try:
        return write_report_files(folder, data)
    except OSError as error:
        raise StageError(
            f"the bundle is in its place, but its report could not be written to {folder}: {error.strerror}",
            hint="free space on the disk, or move away what is there, and build again",
        ) from error


def explain_unmeasured(proofs: Sequence[VariantProof], emitter: Emitter) -> str:
    """Why a bundle with these proofs has no times, where it has none."""
    if isinstance(emitter, Untimed):
        return emitter.untimed
    if not proofs:
        return "the bundle was not run (--no-prove)"
    if any(proof.passed and proof.level in ("emulated", "stand-in") for proof in proofs):
        return "what ran here is not as fast or as slow as the device"
    return "; ".join(sorted({proof.reason for proof in proofs if proof.passed is None})) or "it was not asked for"


def _log_lines(outcomes: Mapping[str, StepOutcome]) -> list[str]:
    lines = []
    for outcome in outcomes.values():
        how = "cached" if outcome.cached else f"{outcome.seconds:.3f} s"
        lines.append(f"{outcome.step}: {how}, key {outcome.key}")
        lines += [f"{outcome.step}: {note.level}: {note.text}" for note in outcome.notes]
    return lines
