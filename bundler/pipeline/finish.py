"""From finished artifacts to a whole, verified bundle in its staging folder, and the report beside it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bundler.emitters.contract import PIPELINE, BuiltComponent, EmitRequest, Emitter, ProofRequest, Untimed
from bundler.emitters.registry import find_emitter
from bundler.emitters.verified import write_verification
from bundler.emitters.writing import write_text
from bundler.model.digests import digest_file
from bundler.model.errors import BundlerError, GateError, StageError, VerificationError
from bundler.model.events import Reporter, StepFinished, StepsEnded, StepStarted
from bundler.model.free_dimensions import shown_name, tensor_type
from bundler.model.manifest import MANIFEST_NAME, GateRecord, Manifest, ModelRecord, RuntimeRecord
from bundler.model.measurement import USUAL, Measurement, Timing
from bundler.model.plan import MODEL
from bundler.model.proof import Download, Emitted, VariantProof, sum_first_visit
from bundler.model.runtime import RuntimeConfig
from bundler.pipeline.built import BuiltBundle, BuiltPart
from bundler.pipeline.companions import list_companions
from bundler.pipeline.golden import describe_golden_sets, record_golden
from bundler.pipeline.judging import METRIC_STAGE
from bundler.pipeline.measuring import choose_timing, explain_too_slow
from bundler.pipeline.pipeline_packages import find_added_pins
from bundler.pipeline.placement import describe_shortfalls
from bundler.pipeline.prepare import Prepared, PreparedBundle, describe_left_out
from bundler.pipeline.requests import profile_overrides
from bundler.pipeline.results import BuildSummary, FirstVisit, MetricResult, VerifiedRun
from bundler.pipeline.workspace import Workspace
from bundler.planning.data import CALIBRATED
from bundler.planning.traits import explain_rounding, judge_rounding
from bundler.providers.cpu import PROVIDER as CPU
from bundler.providers.registry import find_provider
from bundler.providers.wasm import PROVIDER as WASM
from bundler.reporting.data import ComponentReport, ReportData
from bundler.reporting.manifest import ManifestRequest, RecordedComponent, make_manifest, write_manifest
from bundler.reporting.notices import NOTICES_NAME, render_notices
from bundler.reporting.report import write_report as write_report_files
from bundler.reporting.sbom import SBOM_NAME, render_sbom
from bundler.stages.convert_float.spec import SPEC as CONVERT_FLOAT
from bundler.stages.measure_metric.spec import Facts as MetricFacts
from bundler.stages.record_golden.spec import Facts as GoldenFacts
from bundler.verification.proof import combine_proofs, unjudged_of
from bundler.verification.words import BUILDING_HOST, describe_samples, describe_verification

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishRequest:
    """What was prepared and executed, and the staging folder that the bundle is written into."""

    bundle: BuiltBundle
    staged: Path
    workspace: Workspace
    reporter: Reporter

    @property
    def prepared(self) -> PreparedBundle:
        """The request with its plans."""
        return self.bundle.prepared

    @property
    def emitter(self) -> Emitter:
        """What writes and runs the bundle."""
        return find_emitter(self.prepared.emitter)


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
    unfit = (f"NOT FOR SHIPPING: {reason}" for reason in manifest.reservations)
    lines = (
        *unfit,
        *describe_verification(manifest.proof, BUILDING_HOST),
        *manifest.shortfalls,
        *describe_golden_sets(manifest),
    )
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
    prepared, asked = request.prepared, request.prepared.request.pipeline
    requires = asked.requires if asked else ()
    emission = EmitRequest(
        config=request.bundle.config,
        components={part.prepared.plan.name: _describe_component(part) for part in request.bundle.parts},
        profile=prepared.profile,
        format=prepared.format,
        version=prepared.request.version,
        package_name=prepared.request.package_name,
        pipeline={PIPELINE: asked.file, **list_companions(asked.file, asked.files)} if asked else {},
        pipeline_function=asked.entry.rpartition(":")[2] if asked else "",
        versions_chosen=any(text.startswith("python.versions") for text in profile_overrides(prepared.request)),
        pipeline_requires=requires,
        pipeline_pins=find_added_pins(requires, request.workspace.environments, request.reporter),
        environments=request.workspace.environments,
        reporter=request.reporter,
    )
    return request.emitter.emit(emission, request.staged)


def _describe_component(part: BuiltPart) -> BuiltComponent:
    prepared, outcomes = part.prepared, part.outcomes
    golden = outcomes[prepared.plan.golden].folder
    if golden is None:
        raise VerificationError(f"{prepared.title}: the golden set was not recorded")
    return BuiltComponent(
        facts=prepared.facts,
        artifacts={
            variant.name: (part.model(variant), *(outcomes[artifact.step] for artifact in variant.companions))
            for variant in prepared.plan.variants
        },
        golden=golden,
        left_out=tuple(f"{decision.subject}: {decision.reason}" for decision in prepared.settled.left_out),
    )


def _write_notices(request: FinishRequest, emitted: Emitted) -> None:
    prepared, config, staged = request.prepared, request.bundle.config, request.staged
    name = f"{prepared.name}-{prepared.profile.id}"
    runtime = RuntimeRecord(package=prepared.profile.runtime.package, version=prepared.profile.runtime.version)
    sizes = {part.prepared.plan.name: part.prepared.facts.total_bytes for part in request.bundle.parts}
    models = {
        component.name: ModelRecord(name=component.model, digest=component.model_digest, size=sizes[component.name])
        for component in config.components
    }
    bill = render_sbom(
        name=name,
        version=prepared.request.version,
        config=config,
        models=models,
        runtime=runtime,
        dependencies=emitted.dependencies,
    )
    write_text(staged / SBOM_NAME, bill)
    write_text(staged / NOTICES_NAME, render_notices(name, emitted.dependencies))


def _write_manifest(request: FinishRequest, emitted: Emitted) -> tuple[Manifest, int]:
    """The manifest before anything is verified, and the bytes of the bundle with it."""
    prepared, config = request.prepared, request.bundle.config
    budget = prepared.profile.budget
    limits = {"model": budget.model_mb, "bundle": budget.bundle_mb, "download": budget.download_mb}
    described = ManifestRequest(
        plan=prepared.plan,
        profile=prepared.profile,
        config=config,
        emitted=emitted,
        known=_known_digests(request, emitted),
        components={part.prepared.plan.name: _record_component(part, config) for part in request.bundle.parts},
        proof=combine_proofs(()),
        budget_mb={name: limit for name, limit in limits.items() if limit is not None},
        pipeline=request.bundle.pipeline,
    )
    manifest = make_manifest(request.staged, described)
    return manifest, write_manifest(request.staged, manifest)


def _record_component(part: BuiltPart, config: RuntimeConfig) -> RecordedComponent:
    prepared, outcomes = part.prepared, part.outcomes
    plan = prepared.plan
    return RecordedComponent(
        facts=prepared.facts,
        outcomes=part.all_outcomes,
        gate=GateRecord(gates=plan.gates, passed=True),
        golden=record_golden(plan, outcomes, config.component(plan.name)),
        synthetic_inputs=outcomes[plan.golden].read_facts(GoldenFacts).synthetic,
        reservations=_reservations(prepared),
        shortfalls=describe_shortfalls(plan, outcomes),
        shared=part.shared,
    )


def _reservations(prepared: Prepared) -> tuple[str, ...]:
    """Why the bundle must not be shipped."""
    data = prepared.plan_request.calibration
    calibrated = any(step.id == CALIBRATED for step in prepared.plan.steps)
    if calibrated and data is not None and data.synthetic:
        return ("calibrated with synthetic inputs: its ranges do not come from real data",)
    return ()


def _known_digests(request: FinishRequest, emitted: Emitted) -> dict[str, str]:
    """Digests of what was copied from where it is kept by digest: vendored files and, in the open, the models."""
    known = {part.file: part.sha256 for part in emitted.dependencies if part.file and part.sha256}
    known |= {record.path: record.sha256 for part in emitted.dependencies for record in part.files}
    if emitted.payload is not None:
        files = [record for _, variant in request.bundle.config.pairs for record in variant.files]
        known |= {f"{emitted.payload}/{record.path}": record.sha256 for record in files}
    return known


def _weigh_models(part: BuiltPart) -> dict[str, int]:
    """Bytes of each variant's model, by its label, without its companions."""
    variants = part.prepared.plan.variants
    artifacts = {part.prepared.label(variant.name): part.model(variant).artifact for variant in variants}
    return {name: artifact.size if artifact else 0 for name, artifact in artifacts.items()}


def _count_model_bytes(parts: Sequence[BuiltPart]) -> int:
    """Bytes of the preferred variants' models, files of equal content once."""
    models = [part.model(part.prepared.plan.variants[0]).artifact for part in parts]
    files = {record.sha256: record.size for model in models if model is not None for record in model.files}
    return sum(files.values())


def _weigh_downloads(request: FinishRequest, downloads: Sequence[Download]) -> Iterator[tuple[str, str, int]]:
    """Each first visit, and that to all components, with the runtime's build and bytes with brotli."""
    config = request.bundle.config
    for item in downloads:
        yield f"variant {config.label(item.component, item.variant)}", item.build, item.brotli
    if downloads and not config.sole:
        whole = sum_first_visit(downloads)
        yield "all components", whole.build, whole.brotli


def _check_budget(request: FinishRequest, size: int, downloads: tuple[Download, ...]) -> None:
    prepared = request.prepared
    budget = prepared.profile.budget
    over = [
        f"model of variant {name}: {size / MEGABYTE:.2f} MB, budget {budget.model_mb:g} MB"
        for part in request.bundle.parts
        for name, size in _weigh_models(part).items()
        if budget.model_mb is not None and size > budget.model_mb * MEGABYTE
    ]
    if budget.bundle_mb is not None and size > budget.bundle_mb * MEGABYTE:
        over.append(f"bundle: {size / MEGABYTE:.2f} MB, budget {budget.bundle_mb:g} MB")
    over += [
        f"download of {what} ({build}): {size / MEGABYTE:.2f} MB with brotli, budget {budget.download_mb:g} MB"
        for what, build, size in _weigh_downloads(request, downloads)
        if budget.download_mb is not None and size > budget.download_mb * MEGABYTE
    ]
    if over:
        raise GateError(
            f"{prepared.title}: over the size budget",
            details=tuple(over),
            hint="raise it with --set budget.model_mb=…, budget.bundle_mb=… or budget.download_mb=…; "
            "for Python, --python 3.12 builds for one version only",
        )


def _prove(request: FinishRequest) -> tuple[VariantProof, ...]:
    prepared = request.prepared
    proofs = request.emitter.prove(_proof_request(request))
    label = request.bundle.config.label
    failed = [proof for proof in proofs if proof.passed is False]
    if failed:
        raise VerificationError(
            f"{prepared.title}: the bundle did not reproduce its golden set in its own runtime",
            details=tuple(f"{label(proof.component, proof.variant)}: {proof.reason}" for proof in failed),
            hint=_hint_after(failed, request.bundle.parts),
        )
    for proof in proofs:
        if proof.passed is None:
            request.reporter.say(f"{label(proof.component, proof.variant)} not run: {proof.reason}")
    return proofs


def _hint_after(failed: Sequence[VariantProof], parts: Sequence[BuiltPart]) -> str:
    """What helps depends on whether the bundle answered: no gate and no level of optimisation opens a model."""
    if not all(proof.comparison is not None and proof.comparison.outputs for proof in failed):
        doubles = [name for part in parts if _is_accelerated(part, failed) for name in _list_doubles(part, failed)]
        if doubles:
            return (
                f"export the model in float32: {shown_name(doubles[0])} is float64, which accelerators lack; or build "
                "for a target that runs it on the CPU alone"
            )
        return (
            "the bundle did not run to its end, for the reason above; build it with --no-prove to examine it where "
            "that happened"
        )
    hints = dict.fromkeys(
        hint
        for part in parts
        if (variants := _name_failed(part, failed))
        for hint in (*_list_wider_precisions(part, variants), *_list_remedies(part, variants))
    )
    return "; ".join((*hints, "the output folder was not changed"))


def _name_failed(part: BuiltPart, failed: Sequence[VariantProof]) -> set[str]:
    """The variants of this component that failed."""
    return {proof.variant for proof in failed if proof.component == part.prepared.plan.name}


def _list_doubles(part: BuiltPart, failed: Sequence[VariantProof]) -> Sequence[str]:
    """Where the component has float64: in inputs and outputs alone, where the inside was narrowed."""
    names = _name_failed(part, failed)
    if not any(step.options.get("single_precision") and step.variant in names for step in part.prepared.plan.steps):
        return part.prepared.facts.doubles
    signature = part.prepared.facts.signature
    ports = (*signature.inputs, *signature.outputs)
    return [port.name for port in ports if tensor_type(port.type).element_type == "float64"]


def _is_accelerated(part: BuiltPart, failed: Sequence[VariantProof]) -> bool:
    """Whether a variant of this component that failed is for more than a CPU."""
    names = _name_failed(part, failed)
    return any(
        variant.name in names and not {entry.name for entry in variant.providers[:1]} <= {CPU.name, WASM.name}
        for variant in part.prepared.plan.variants
    )


def _list_wider_precisions(part: BuiltPart, names: Collection[str]) -> Iterator[str]:
    """How the variants of these names compute in more bits, where they round to fewer than the original model."""
    profile = part.prepared.profile
    converted = {step.variant: step for step in part.prepared.plan.steps if step.stage == CONVERT_FLOAT.name}
    half = {
        name
        for name, step in converted.items()
        if step.options.get("type", "float16") == "float16" and step.options.get("scope", "model") == "model"
    }
    for variant in profile.variants:
        name, first = variant.name, variant.providers[0].name
        exact = find_provider(first).numerics.exact
        if name not in names:
            continue
        if name in half:
            search = "" if converted[name].options.get("search") else f"{_SEARCH.format(name)}, or "
            yield f"{name} is in half precision, whose sums overflow on some devices: {search}{_NONE.format(name)}"
        elif name in converted:
            yield f"{name} was converted to 16 bits: compare without, {_NONE.format(name)}"
        elif exact and judge_rounding(profile, variant) != "none":
            prefix = f"--set variants.{name}.providers.{first}.options"
            options = " ".join(f"{prefix}.{key}={value}" for key, value in exact.items())
            yield f"{name} {explain_rounding(profile, variant)}: in full precision, and slower, {options}"


_NONE = "--set variants.{}.precision=none"
_SEARCH = "--set variants.{}.precision=mixed-fp16 --calibration PATH keeps nodes that overflow in 32 bits"


def _list_remedies(part: BuiltPart, names: Collection[str]) -> Iterator[str]:
    """For outputs that differ in the bundle's own runtime, of the variants of these names. A quantised model rounds to
    the other side where kernels differ in the last bit; on synthetic inputs, its outputs may vary no more than that.
    """
    prepared, plan = part.prepared, part.prepared.plan
    if part.outcomes[plan.golden].read_facts(GoldenFacts).synthetic:
        yield "these inputs are synthetic, and outputs may vary little over them: give real ones with --samples PATH"
    if any(step.options.get("level") == "extended" and step.variant in names for step in plan.steps):
        yield "compare with less optimisation: --set optimization.level=basic"
    if prepared.facts.quantized:
        yield "kernels for int8 round differently in each runtime: build the floating-point model instead"


def _is_timed(request: FinishRequest, proofs: Sequence[VariantProof]) -> bool:
    """Whether the bundle is timed; where only the time is missing, a line says so."""
    if not request.prepared.request.prove or isinstance(request.emitter, Untimed):
        return False
    too_slow = explain_too_slow(request.prepared.request, proofs)
    if too_slow:
        request.reporter.say(f"not timed: {too_slow}")
    return not too_slow


def _measure(request: FinishRequest) -> tuple[Measurement, ...]:
    """Load time and latency beside the original model's, where this machine can run the bundle."""
    timing = choose_timing(request.prepared.request)
    return request.emitter.measure(_proof_request(request, timing))


def _proof_request(request: FinishRequest, timing: Timing = USUAL) -> ProofRequest:
    models = {part.prepared.plan.name: part.prepared.sources[MODEL].path for part in request.bundle.parts}
    return request.workspace.request_proof(
        request.staged, request.reporter.listener, request.prepared.request.on, models, timing
    )


def list_notes(parts: Sequence[BuiltPart], emitted: Sequence[str]) -> list[str]:
    """Every note of the build, each once: on variants left out, of the plan, of the steps before it and in it, on
    accelerators with too few nodes, and those of the emitter; with the component's name where there are several.
    """
    notes = [
        f"{part.prepared.plan.name}: {text}" if len(parts) > 1 else text for part in parts for text in _list_own(part)
    ]
    return list(dict.fromkeys((*notes, *emitted)))


def _list_own(part: BuiltPart) -> Iterator[str]:
    prepared, outcomes = part.prepared, part.outcomes
    yield from describe_left_out(prepared.settled.left_out)
    yield from (note.text for note in prepared.plan.notes)
    yield from (note.text for outcome in part.all_outcomes for note in outcome.notes)
    yield from describe_shortfalls(prepared.plan, outcomes)


def _summarize(
    request: FinishRequest, manifest: Manifest, size: int, emitted: Emitted, proofs: Sequence[VariantProof]
) -> BuildSummary:
    records, label = manifest.proof.variants, manifest.label
    return BuildSummary(
        digest=digest_file(request.staged / MANIFEST_NAME),
        proof=manifest.proof.level,
        proofs={label(record.component, record.variant): record.level for record in records},
        unproven={label(record.component, record.variant): record.reason for record in records if not record.passed},
        verified=(*describe_verification(manifest.proof), *describe_samples(manifest)),
        bundle_bytes=size,
        model_bytes=_count_model_bytes(request.bundle.parts),
        notes=tuple(list_notes(request.bundle.parts, emitted.notes)),
        golden=manifest.sole.golden if manifest.sole else None,
        reservations=manifest.reservations,
        metrics=tuple(_list_metrics(request)),
        pipeline=manifest.pipeline,
        first_visits=tuple(_list_visits(manifest, emitted.downloads)),
        runs=tuple(
            VerifiedRun(
                component=proof.component, variant=proof.variant, place=proof.place, comparison=proof.comparison
            )
            for proof in proofs
            if proof.passed and proof.comparison
        ),
    )


def _list_visits(manifest: Manifest, downloads: Sequence[Download]) -> Iterator[FirstVisit]:
    """Those of each variant, after the one that opens all components where there are several."""
    named = [(manifest.label(item.component, item.variant), item) for item in downloads]
    if downloads and not manifest.sole:
        named.insert(0, ("all components", sum_first_visit(downloads)))
    for name, item in named:
        yield FirstVisit(variant=name, build=item.build, size=item.size, gzip=item.gzip, brotli=item.brotli)


def _list_metrics(request: FinishRequest) -> Iterator[MetricResult]:
    for part in request.bundle.parts:
        for step in part.prepared.plan.steps:
            if step.stage == METRIC_STAGE:
                facts = part.outcomes[step.id].read_facts(MetricFacts)
                variant = part.prepared.label(step.variant or "")
                yield MetricResult(variant=variant, value=facts.value, reference=facts.reference)


def write_report(bundle: BuiltBundle, finished: Finished, folder: Path) -> Path:
    """Write the report of a finished bundle; returns the page. Raises `StageError` when the disk refuses it."""
    prepared, emitter = bundle.prepared, find_emitter(bundle.prepared.emitter)
    data = ReportData(
        components=tuple(_report_component(part, finished) for part in bundle.parts),
        manifest=finished.manifest,
        bundle_bytes=finished.summary.bundle_bytes,
        unmeasured=explain_too_slow(prepared.request, finished.proofs) or explain_unmeasured(finished.proofs, emitter),
        is_brief=not prepared.request.measure,
        phases=finished.phases,
        downloads=finished.downloads,
        log=tuple(line for part in bundle.parts for line in _log_lines(part)),
    )
    try:
        return write_report_files(folder, data)
    except OSError as error:
        raise StageError(
            f"the bundle was written, but its report could not be written to {folder}: {error.strerror}",
            hint="free space on the disk, or move the old report, and build again",
        ) from error


def _report_component(part: BuiltPart, finished: Finished) -> ComponentReport:
    prepared, name = part.prepared, part.prepared.plan.name
    return ComponentReport(
        plan=prepared.plan,
        outcomes=part.all_outcomes,
        facts=prepared.settled.facts,
        record=finished.manifest.component(name),
        proofs=tuple(proof for proof in finished.proofs if proof.component == name),
        measurements=tuple(measured for measured in finished.measurements if measured.component == name),
        asker=prepared.plan_request.asker,
        frontiers=prepared.frontiers,
    )


def explain_unmeasured(proofs: Sequence[VariantProof], emitter: Emitter) -> str:
    """Why a bundle with these proofs has no times, where it has none."""
    if isinstance(emitter, Untimed):
        return emitter.untimed
    if not proofs:
        return "the bundle was not run (--no-prove)"
    if any(proof.passed and proof.level in ("emulated", "stand-in") for proof in proofs):
        return "it ran here as an emulation or stand-in, whose times say nothing about the device"
    return "; ".join(sorted({proof.reason for proof in proofs if proof.passed is None})) or "not requested"


def _log_lines(part: BuiltPart) -> list[str]:
    lines = []
    for outcome in part.outcomes.values():
        step = part.prepared.label(outcome.step)
        how = "cached" if outcome.cached else f"{outcome.seconds:.3f} s"
        lines.append(f"{step}: {how}, key {outcome.key}")
        lines += [f"{step}: {note.level}: {note.text}" for note in outcome.notes]
    return lines
