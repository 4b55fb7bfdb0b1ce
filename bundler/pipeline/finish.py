"""From finished artifacts to a whole, proven bundle in its staging folder, and the report beside it."""

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
from bundler.model.measurement import Measurement
from bundler.model.plan import MODEL, variant_artifacts
from bundler.model.proof import Download, Emitted, VariantProof
from bundler.model.results import StepOutcome
from bundler.model.runtime import RuntimeConfig
from bundler.pipeline.golden import describe_golden, record_golden
from bundler.pipeline.judging import METRIC_STAGE
from bundler.pipeline.placement import describe_shortfalls
from bundler.pipeline.prepare import Prepared, describe_left_out
from bundler.pipeline.results import BuildSummary, FirstVisit, MetricResult, VerifiedRun
from bundler.pipeline.workspace import Workspace
from bundler.planning.data import CALIBRATED
from bundler.reporting.data import ReportData
from bundler.reporting.manifest import ManifestRequest, make_manifest, weigh_bundle, write_manifest
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
    """A bundle on its way: what was prepared and executed, and the staging folder in which it grows."""

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


def finish_bundle(piece: FinishRequest) -> Finished:
    """Emit, describe and prove. Raises `GateError` over a budget, `VerificationError` when the proof fails."""
    phases: dict[str, float] = {}
    with _timed(piece, phases, "emit"):
        emitted = _emit(piece)
        _write_notices(piece, emitted)
    for text in emitted.notes:
        piece.reporter.say(text)
    manifest = _write_manifest(piece, emitted)
    _check_budget(piece, manifest, emitted.downloads)
    proofs: tuple[VariantProof, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    if piece.prepared.request.prove:
        with _timed(piece, phases, "prove"):
            proofs = _prove(piece)
        manifest = replace(manifest, proof=combine_proofs(proofs, unjudged_of(manifest)))
    manifest = _describe_verification(piece, manifest)
    _check_budget(piece, manifest, emitted.downloads)  # Again: what was verified makes the manifest longer.
    if piece.prepared.request.prove and not isinstance(find_emitter(piece.prepared.plan.emitter), Untimed):
        with _timed(piece, phases, "measure"):
            measurements = _measure(piece)
    if not measurements:
        phases.pop("measure", None)
    return Finished(
        manifest=manifest,
        proofs=proofs,
        measurements=measurements,
        phases=phases,
        downloads=emitted.downloads,
        summary=_summarize(piece, manifest, emitted, proofs),
    )


def _describe_verification(piece: FinishRequest, manifest: Manifest) -> Manifest:
    """Put what was verified into the README, which was written before, and both into the manifest."""
    golden = (describe_golden(manifest.golden),) if manifest.golden else ()
    lines = (*describe_verification(manifest.proof, BUILDING_HOST), *manifest.shortfalls, *golden)
    changed = write_verification(piece.staged, lines)
    if changed is not None:
        files = tuple(changed if record.path == changed.path else record for record in manifest.files)
        manifest = replace(manifest, files=files)
    write_manifest(piece.staged, manifest)
    return manifest


_PHASES = {"emit": "Write the bundle", "prove": "Verify the bundle", "measure": "Time the bundle"}
"""What follows the plan's steps, and what people read of it."""


@contextmanager
def _timed(piece: FinishRequest, phases: dict[str, float], name: str) -> Iterator[None]:
    """Add the seconds of a block to `phases`, and tell of it as of a step."""
    build, title, listener = piece.reporter.build, _PHASES[name], piece.reporter.listener
    listener(StepStarted(build=build, step=name, title=title, position=0, total=0))
    began = time.perf_counter()
    try:
        yield
    except BundlerError:
        listener(StepsEnded(build=build))
        raise
    phases[name] = seconds = time.perf_counter() - began
    listener(StepFinished(build=build, step=name, title=title, cached=False, seconds=seconds))


def _emit(piece: FinishRequest) -> Emitted:
    prepared, outcomes = piece.prepared, piece.outcomes
    golden = outcomes[prepared.plan.golden].folder
    if golden is None:
        raise VerificationError(f"{prepared.title}: the golden set was not recorded")
    request = EmitRequest(
        config=piece.config,
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
        environments=piece.workspace.environments,
        reporter=piece.reporter,
        left_out=tuple(f"{decision.subject}: {decision.reason}" for decision in prepared.settled.left_out),
    )
    return find_emitter(prepared.plan.emitter).emit(request, piece.staged)


def _write_notices(piece: FinishRequest, emitted: Emitted) -> None:
    prepared, config, staged = piece.prepared, piece.config, piece.staged
    name = f"{prepared.plan.model_name}-{prepared.profile.id}"
    runtime = RuntimeRecord(package=prepared.profile.runtime.package, version=prepared.profile.runtime.version)
    model = ModelRecord(name=config.model, digest=config.model_digest, size=prepared.facts.total_bytes)
    bill = render_sbom(
        name=name,
        version=prepared.request.version,
        config=config,
        model=model,
        runtime=runtime,
        components=emitted.components,
    )
    write_text(staged / SBOM_NAME, bill)
    write_text(staged / NOTICES_NAME, render_notices(name, emitted.components))


def _write_manifest(piece: FinishRequest, emitted: Emitted) -> Manifest:
    prepared, outcomes = piece.prepared, piece.outcomes
    budget = prepared.profile.budget
    limits = {"model": budget.model_mb, "bundle": budget.bundle_mb, "download": budget.download_mb}
    request = ManifestRequest(
        plan=prepared.plan,
        profile=prepared.profile,
        facts=prepared.facts,
        config=piece.config,
        emitted=emitted,
        known=_known_digests(piece, emitted),
        outcomes=(*prepared.earlier, *outcomes.values()),
        gate=GateRecord(
            gates=prepared.plan.gates,
            passed=True,
            budget_mb={name: limit for name, limit in limits.items() if limit is not None},
        ),
        proof=combine_proofs(()),
        golden=record_golden(prepared.plan, outcomes, piece.config),
        synthetic_inputs=outcomes[prepared.plan.golden].read_facts(GoldenFacts).synthetic,
        reservations=_reservations(prepared),
        shortfalls=describe_shortfalls(prepared.plan, outcomes),
    )
    manifest = make_manifest(piece.staged, request)
    write_manifest(piece.staged, manifest)
    return manifest


def _reservations(prepared: Prepared) -> tuple[str, ...]:
    """Why the bundle must not be shipped."""
    data = prepared.plan_request.calibration
    calibrated = any(step.id == CALIBRATED for step in prepared.plan.steps)
    if calibrated and data is not None and data.synthetic:
        return ("calibrated with made-up inputs: its ranges are those of no real data",)
    return ()


def _known_digests(piece: FinishRequest, emitted: Emitted) -> dict[str, str]:
    """Digests of what was copied from where it is kept by digest: vendored files and, in the open, the models."""
    known = {part.file: part.sha256 for part in emitted.components if part.file and part.sha256}
    if emitted.payload is not None:
        files = [record for variant in piece.config.variants for record in variant.files]
        known |= {f"{emitted.payload}/{record.path}": record.sha256 for record in files}
    return known


def _check_budget(piece: FinishRequest, manifest: Manifest, downloads: tuple[Download, ...]) -> None:
    prepared, config = piece.prepared, piece.config
    budget = prepared.profile.budget
    models = {variant.name: sum(record.size for record in variant.files) for variant in config.variants}
    over = [
        f"model of variant {name}: {size / MEGABYTE:.2f} MB, budget {budget.model_mb:g} MB"
        for name, size in models.items()
        if budget.model_mb is not None and size > budget.model_mb * MEGABYTE
    ]
    size = weigh_bundle(manifest)
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
            "for Python, fewer python.versions make a bundle smaller",
        )


def _prove(piece: FinishRequest) -> tuple[VariantProof, ...]:
    prepared = piece.prepared
    proofs = find_emitter(prepared.plan.emitter).prove(_proof_request(piece))
    failed = [proof for proof in proofs if proof.passed is False]
    if failed:
        raise VerificationError(
            f"{prepared.title}: the bundle did not reproduce its golden set in its own runtime",
            details=tuple(f"{proof.variant}: {proof.reason}" for proof in failed),
            hint="nothing was put into place; --set optimization.level=basic bakes less, and where a device rounds "
            "more than the gate allows, --set accuracy.sqnr_db=… widens it",
        )
    for proof in proofs:
        if proof.passed is None:
            piece.reporter.say(f"{proof.variant} not run: {proof.reason}")
    return proofs


def _measure(piece: FinishRequest) -> tuple[Measurement, ...]:
    """Opening and latency beside the original model, where this machine can run the bundle."""
    return find_emitter(piece.prepared.plan.emitter).measure(_proof_request(piece))


def _proof_request(piece: FinishRequest) -> ProofRequest:
    request = piece.prepared.request
    return ProofRequest(
        bundle=piece.staged,
        cache_root=piece.workspace.cache.root,
        listener=piece.reporter.listener,
        model=piece.prepared.sources[MODEL].path,
        on=request.on,
        environments=piece.workspace.environments,
        sandbox=piece.workspace.sandbox,
    )


def list_notes(prepared: Prepared, outcomes: Mapping[str, StepOutcome], told: Sequence[str]) -> list[str]:
    """All that was said on the way, each once: of variants left out, by the plan, by the steps before it and in it, of
    accelerators that take too little, and what the emitter `told`.
    """
    steps = (*prepared.earlier, *outcomes.values())
    heard = [*prepared.plan.notes, *(note for outcome in steps for note in outcome.notes)]
    shortfalls = describe_shortfalls(prepared.plan, outcomes)
    left_out = describe_left_out(prepared.settled.left_out)
    return list(dict.fromkeys((*left_out, *(note.text for note in heard), *shortfalls, *told)))


def _summarize(
    piece: FinishRequest, manifest: Manifest, emitted: Emitted, proofs: Sequence[VariantProof]
) -> BuildSummary:
    records = manifest.proof.variants
    return BuildSummary(
        digest=digest_file(piece.staged / MANIFEST_NAME),
        proof=manifest.proof.level,
        proofs={record.variant: record.level for record in records},
        unproven={record.variant: record.reason for record in records if not record.passed},
        verified=tuple(describe_verification(manifest.proof)),
        bundle_bytes=weigh_bundle(manifest),
        model_bytes=sum(record.size for record in piece.config.variants[0].files),
        notes=tuple(list_notes(piece.prepared, piece.outcomes, emitted.notes)),
        golden=manifest.golden,
        reservations=manifest.reservations,
        metrics=tuple(_list_metrics(piece)),
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


def _list_metrics(piece: FinishRequest) -> Iterator[MetricResult]:
    for step in piece.prepared.plan.steps:
        if step.stage == METRIC_STAGE:
            facts = piece.outcomes[step.id].read_facts(MetricFacts)
            yield MetricResult(variant=step.variant or "", value=facts.value, reference=facts.reference)


def write_report(prepared: Prepared, outcomes: Mapping[str, StepOutcome], finished: Finished, folder: Path) -> Path:
    """Write the report of a finished bundle; returns the page. Raises `StageError` when the disk refuses it."""
    data = ReportData(
        plan=prepared.plan,
        outcomes=(*prepared.earlier, *outcomes.values()),
        facts=prepared.settled.facts,
        asker=prepared.plan_request.asker,
        manifest=finished.manifest,
        proofs=finished.proofs,
        measurements=finished.measurements,
        unmeasured=explain_unmeasured(finished.proofs, find_emitter(prepared.plan.emitter)),
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
            hint="free space on the disk, or move away what stands there, and build again",
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
