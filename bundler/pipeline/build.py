"""`build`: from a model and a target to a verified bundle in its place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

from bundler.model.attempts import Frontier
from bundler.model.errors import BundlerError, GateError, ModelError
from bundler.model.events import Listener, Reporter
from bundler.model.golden_inputs import NOTHING_RAN
from bundler.model.manifest import PipelineRecord
from bundler.model.plan import MODEL
from bundler.model.results import StepOutcome
from bundler.pipeline.accuracy import find_accuracies
from bundler.pipeline.assemble import make_runtime_config
from bundler.pipeline.built import BuiltBundle, BuiltPart
from bundler.pipeline.judging import Verdict, judge_plan
from bundler.pipeline.lower_level import is_fused, lower_level, tries_lower
from bundler.pipeline.memo import bundle_key, recall_bundle, remember_bundle
from bundler.pipeline.only_sizes import settle_only_sizes
from bundler.pipeline.parallel import run_each
from bundler.pipeline.place import check_replaceable, put_in_place, staging_folder
from bundler.pipeline.placement import check_placements, find_placements
from bundler.pipeline.preloading import preload_on_start
from bundler.pipeline.prepare import Prepared, PreparedBundle, name_component, prepare
from bundler.pipeline.requests import BuildRequest
from bundler.pipeline.results import (
    AccuracyResult,
    BuildResult,
    BuildSummary,
    ChosenPrecision,
    PlacementResult,
    WrittenBundle,
)
from bundler.pipeline.running_sizes import SizeTrial, name_running_sizes
from bundler.pipeline.workspace import Workspace
from bundler.planning.precision import asked_method
from bundler.profiles.methods import AUTO
from bundler.reporting.claims import doubt_ratio
from bundler.reporting.placement import describe_gain
from bundler.reporting.timings import report_folder
from bundler.stages.record_golden.spec import Facts as GoldenFacts
from bundler.support.reads import announce_look

DEFAULT_EMITTER = "python"
"""Whose templates are compiled while the model is inspected; its target, and so its emitter, is not known before."""


def build(
    request: BuildRequest, workspace: Workspace, listener: Listener, publishing: Callable[[], None] = lambda: None
) -> BuildResult:
    """Build one bundle, and call `publishing` before it is put into its place. Raises a `BundlerError`; the previous
    bundle is then unchanged.
    """
    began = time.perf_counter()
    listener = preload_on_start(listener, DEFAULT_EMITTER)
    prepared = prepare(request, workspace, listener)
    final = request.output / f"{prepared.name}-{prepared.profile.id}"
    check_replaceable(final)
    parts = run_each(lambda part: _build_component(part, workspace, listener), prepared.parts, workspace.executor)
    reporter = Reporter(listener, prepared.title)
    prepared = replace(prepared, parts=tuple(part.prepared for part in parts))  # what was settled on the way
    parts = _share_contexts(parts, request.together, workspace, reporter)
    parts = _share_weights(parts, workspace, reporter)
    bundle = BuiltBundle(
        prepared=prepared,
        parts=tuple(parts),
        config=make_runtime_config(prepared, parts),
        pipeline=_judge_pipeline(prepared, tuple(parts), workspace, reporter),
    )
    root = workspace.cache.root
    key = bundle_key(bundle)
    report = report_folder(final) / "report.html"
    summary = recall_bundle(root, final, key)
    if summary is None and request.prove and not request.measure:  # brief figures do not replace those of --measure
        summary = recall_bundle(root, final, bundle_key(bundle.measured()))
    if summary is not None and not _is_there(report):
        reporter.say(f"the report {report} is missing: writing the bundle and its report again")
        summary = None
    fresh = summary is None
    if summary is None:
        summary = _write(bundle, final=final, workspace=workspace, reporter=reporter, publishing=publishing)
        remember_bundle(root, final, key, summary)
    return BuildResult(
        **{item.name: getattr(summary, item.name) for item in fields(WrittenBundle)},
        name=prepared.name,
        target=prepared.profile.id,
        bundle=final,
        report=report,
        format=prepared.format,
        up_to_date=not fresh,
        source_bytes=sum(part.prepared.facts.total_bytes for part in parts),
        seconds=time.perf_counter() - began,
        precisions=tuple(_describe_choice(frontier, part) for part in parts for frontier in part.prepared.frontiers),
        placements=tuple(found for part in parts for found in _placements(part.prepared, part.outcomes)),
        accuracies=tuple(found for part in parts for found in _find_accuracies(part, summary)),
        decisions={
            part.prepared.label(name): choice for part in parts for name, choice in part.prepared.decisions.items()
        },
    )


def _is_there(report: Path) -> bool:
    """Whether the report can be announced."""
    announce_look(report)
    return report.is_file()


def _share_contexts(
    parts: list[BuiltPart], together: Sequence[str], workspace: Workspace, reporter: Reporter
) -> list[BuiltPart]:
    """The components, with what was compiled for those `together` in one file where that is smaller."""
    if not together:
        return parts
    from bundler.pipeline.contexts import share_contexts  # noqa: PLC0415 - see above

    return share_contexts(parts, together, workspace, reporter)


def _share_weights(parts: list[BuiltPart], workspace: Workspace, reporter: Reporter) -> list[BuiltPart]:
    """The components, with weights that several models hold stored once. One model alone loads nothing of it."""
    if sum(len(part.prepared.plan.variants) for part in parts) == 1:
        return parts
    from bundler.pipeline.sharing import share_weights  # noqa: PLC0415 - see above

    return share_weights(parts, workspace, reporter)


def _judge_pipeline(
    prepared: PreparedBundle, parts: tuple[BuiltPart, ...], workspace: Workspace, reporter: Reporter
) -> tuple[PipelineRecord, ...]:
    """What the user's own pipeline answers. What runs it is loaded only where there is one."""
    if prepared.request.pipeline is None:
        return ()
    from bundler.pipeline.whole import judge_pipeline  # noqa: PLC0415 - see above

    return judge_pipeline(prepared, parts, workspace, reporter)


def _build_component(prepared: Prepared, workspace: Workspace, listener: Listener) -> BuiltPart:
    """Run a component's steps, and hold it to its gates."""
    with name_component(prepared.prefix.rstrip("/")):
        return _run_steps(prepared, workspace, listener)


def _run_steps(prepared: Prepared, workspace: Workspace, listener: Listener) -> BuiltPart:
    reporter = Reporter(listener, prepared.title)
    for note in prepared.plan.notes:
        reporter.pass_on(note)
    prepared = _settle(prepared, workspace, reporter)
    try:
        outcomes = workspace.executor.execute(prepared.plan.steps, prepared.sources, reporter)
    except ModelError as error:
        raise _explain_sizes(error, prepared, workspace, reporter) from error
    prepared, outcomes = lower_level(prepared, outcomes, workspace, reporter)
    prepared = replace(prepared, plan=settle_only_sizes(prepared.plan, prepared.facts.signature, outcomes))
    check_placements(prepared.plan, outcomes, reporter)
    check_gates(prepared, outcomes, workspace, reporter)
    return BuiltPart(prepared=prepared, outcomes=outcomes)


def _explain_sizes(error: ModelError, prepared: Prepared, workspace: Workspace, reporter: Reporter) -> BundlerError:
    """The error with sizes at which the model runs, where it ran at none of those that this build fixes."""
    if not error.message.startswith(NOTHING_RAN) or not prepared.plan.fixed_sizes:
        return error
    trial = SizeTrial(
        source=prepared.sources[MODEL],
        facts=prepared.facts,
        fixed=prepared.plan.fixed_sizes,
        asker=prepared.plan_request.asker,
    )
    return name_running_sizes(error, trial, workspace, reporter)


def _find_accuracies(part: BuiltPart, summary: BuildSummary) -> Iterator[AccuracyResult]:
    runs = [run for run in summary.runs if run.component == part.prepared.plan.name]
    for found in find_accuracies(part.prepared.plan, part.outcomes, runs):
        place = "compiled alone" if found.variant in part.partners else found.place
        yield replace(found, variant=part.prepared.label(found.variant), place=place)


def _placements(prepared: Prepared, outcomes: Mapping[str, StepOutcome]) -> tuple[PlacementResult, ...]:
    facts = prepared.settled.facts
    return tuple(
        PlacementResult(
            variant=prepared.label(variant.name),
            provider=found.provider,
            assigned=found.assigned,
            total=found.assigned + found.left,
            estimated=found.estimated,
            estimated_by=found.estimated_by,
            least_share=variant.least_share,
            gain="" if found.gain is None else describe_gain(found.gain, facts.signature, prepared.plan_request.asker),
        )
        for variant, found in find_placements(prepared.plan, outcomes)
    )


def _settle(prepared: Prepared, workspace: Workspace, reporter: Reporter) -> Prepared:
    """With a precision for each variant that leaves it open. What tries them is loaded only where it is needed."""
    if all(asked_method(prepared.profile, variant) != AUTO for variant in prepared.profile.variants):
        return prepared
    from bundler.pipeline.precision import settle_precision  # noqa: PLC0415 - see above

    return settle_precision(prepared, workspace, reporter)


def _write(
    bundle: BuiltBundle, *, final: Path, workspace: Workspace, reporter: Reporter, publishing: Callable[[], None]
) -> BuildSummary:
    """Emit, verify and put into place. Its imports (templates, bill of materials) cost nothing to a rebuild."""
    from bundler.pipeline.finish import FinishRequest, finish_bundle, write_report  # noqa: PLC0415 - see above

    with staging_folder(final) as staged:
        finished = finish_bundle(FinishRequest(bundle=bundle, staged=staged, workspace=workspace, reporter=reporter))
        publishing()
        put_in_place(staged, final, lambda: write_report(bundle, finished, report_folder(final)))
    return finished.summary


def check_gates(
    prepared: Prepared, outcomes: Mapping[str, StepOutcome], workspace: Workspace, reporter: Reporter
) -> None:
    """Raise `GateError` naming the first stage, in the order of the plan, that broke the gate: its worst outputs and
    samples, and, where it reduces precision, the error sources.
    """
    verdicts = judge_plan(prepared.plan, prepared.profile, outcomes)
    if not verdicts:
        return
    from bundler.pipeline.error_sources import ErrorSources, find_error_sources, hint_for_loss, lossy_step  # noqa: PLC0415 - for failures alone

    verdict = verdicts[0]
    lossy = lossy_step(prepared, verdict)
    sources = ErrorSources()
    if lossy is not None:
        sources = find_error_sources(prepared, outcomes, verdict, lossy, workspace=workspace, reporter=reporter)
    compiled = verdict.judged in {variant.compiled for variant in prepared.plan.variants}
    if compiled and (lossy is None or all(other.judged != lossy.id for other in verdicts)):
        line = _COMPILED_WRONG if verdict.is_noise else _DEVICE_LOSES
        sources = replace(sources, lines=(line, *sources.lines))
    broken = "your metric" if verdict.is_metric else "the accuracy gate"
    remedy = hint_for_loss(prepared, lossy, sources, verdict.setting) if lossy else _gate_hint(prepared, verdicts)
    if _COMPILED_WRONG in sources.lines:
        remedy = "build for a target without this variant, or choose another precision.method; no wider gate mends it"
    raise GateError(
        f"{prepared.title}: stage {verdict.judged} breaks {broken}",
        details=(*verdict.lines, *sources.lines),
        hint=f"{_ask_for_samples(prepared)}; otherwise {remedy}" if _is_seeded(verdict, outcomes) else remedy,
    )


_DEVICE_LOSES = "the model met the gate before it was compiled: the device's arithmetic adds to the loss"

_COMPILED_WRONG = (
    "the model met the gate before it was compiled; now errors are as large as the values: the compiler or the device "
    "computes an operator wrong, or its numbers overflow"
)


def _is_seeded(verdict: Verdict, outcomes: Mapping[str, StepOutcome]) -> bool:
    """Whether it was judged on inputs that no user has: what fails on them may hold where the model is used."""
    golden = outcomes.get(verdict.step.inputs.get("golden", ""))
    return not verdict.is_metric and golden is not None and golden.read_facts(GoldenFacts).synthetic


def _ask_for_samples(prepared: Prepared) -> str:
    project = prepared.request.project
    where = f'samples = "FOLDER" in {project}, in the table of the model' if project else "--samples FOLDER"
    return f"the gate ran on synthetic inputs: retry with real samples first, {where}"


def _gate_hint(prepared: Prepared, verdicts: Sequence[Verdict]) -> str:
    verdict = verdicts[0]
    if verdict.judged == "simplify":
        return "skip the simplifier with --set optimization.simplifier=none"
    widen = f"widen the gate with --set {verdict.setting}"
    if not is_fused(prepared, verdict) or tries_lower(prepared, verdicts):
        return widen
    return f"lower the level with --set optimization.level=basic, or {widen}"


def _describe_choice(frontier: Frontier, part: BuiltPart) -> ChosenPrecision:
    chosen = next((attempt for attempt in frontier.attempts if attempt.state == "chosen"), None)
    return ChosenPrecision(
        variant=part.prepared.label(frontier.variant),
        method=frontier.chosen,
        ratio=chosen.ratio if chosen else None,
        timing=frontier.timing,
        doubt=doubt_ratio(chosen.low, chosen.high, chosen.rounds) if chosen else "",
    )
