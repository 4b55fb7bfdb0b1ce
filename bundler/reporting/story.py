"""The textual parts of a report: the headline, what was verified, the notes and the steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from bundler.model.artifacts import FileRecord
from bundler.model.manifest import ComponentRecord, Manifest, OutputCheck
from bundler.model.measurement import Measurement
from bundler.model.plan import Step, VariantPlan
from bundler.model.proof import VariantProof
from bundler.model.results import StepOutcome
from bundler.providers.cpu import PROVIDER as CPU
from bundler.reporting.accuracy import describe_doubts, final_checks, greatest_error, judged_outputs, least_decibels
from bundler.reporting.checks import check_output
from bundler.reporting.claims import compare_medians
from bundler.reporting.data import ComponentReport, ReportData, Spread, summarize_series
from bundler.reporting.downloads import make_download_card
from bundler.reporting.figures import show_error, show_percent
from bundler.reporting.manifest import order_outcomes
from bundler.reporting.models import show_tag, title_stage, title_step
from bundler.reporting.page import Bar, BarChart, Card, NoteRow, StepRow
from bundler.reporting.placement import describe_shortfalls
from bundler.reporting.scales import linear_scale
from bundler.support.text import count_things, format_bytes, format_milliseconds
from bundler.verification.words import BUILDING_HOST, describe_pipeline, describe_variants, is_verified

_SHOWN_FILES = 12
_KEY = 12
"""Characters of a cache key that are shown."""


def make_cards(data: ReportData) -> tuple[Card, ...]:
    """The headline: that of the only component, or size and accuracy of the whole."""
    if data.manifest.sole:
        return make_component_cards(data, data.components[0])
    return (_count_card(data), make_download_card(data) if data.downloads else _total_card(data), _worst_card(data))


def make_component_cards(data: ReportData, part: ComponentReport) -> tuple[Card, ...]:
    """Size (for a web bundle of one model: of the first visit), load time, latency and accuracy of the preferred
    variant.
    """
    first = part.measurements[0] if part.measurements else Measurement(name="", variant="")
    tag = show_tag(part, first.variant)
    suffix = f", {tag}" if tag else ""
    unmeasured = explain_untimed(data)
    load, call = (first.baseline_opening_ms, first.opening_ms), (first.baseline_latency_ms, first.latency_ms)
    return (
        make_download_card(data) if data.downloads and data.manifest.sole else _size_card(data, part),
        _time_card(f"Load to first inference{suffix}", first, load, unmeasured),
        _time_card(f"Steady-state latency{suffix}", first, call, unmeasured),
        _accuracy_card(part),
    )


def explain_untimed(data: ReportData) -> str:
    """Why a component was not timed."""
    timed = [part.record.name for part in data.components if part.measurements]
    return f"only {' and '.join(timed)} was timed" if timed else data.unmeasured


def _count_card(data: ReportData) -> Card:
    names = ", ".join(component.name for component in data.manifest.components)
    return Card(label="Components", value=f"{len(data.components)}", change="", detail=names, tone="plain")


def _total_card(data: ReportData) -> Card:
    """The bundle's bytes beside those of all original models."""
    before = sum(component.model.size for component in data.manifest.components)
    return Card(
        label="Bundle size",
        value=format_bytes(data.bundle_bytes),
        change="",
        detail=f"original models {format_bytes(before)}",
        tone="plain",
    )


_TONES = ("bad", "none", "plain", "good")
"""Of cards, from the least good."""


def _worst_card(data: ReportData) -> Card:
    """The accuracy of the component that is furthest from its original model."""
    cards = [
        (part.record.name, _accuracy_card(part), least_decibels(_compared_outputs(part))) for part in data.components
    ]
    name, worst, _ = min(cards, key=lambda item: (_TONES.index(item[1].tone), math.inf if item[2] is None else item[2]))
    if all(card.value == worst.value for _, card, _ in cards):
        return worst
    return replace(worst, label="Lowest accuracy", detail=f"{name}: {worst.detail}")


def describe_proof(data: ReportData) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What was verified and what was not, as sentences."""
    manifest = data.manifest
    proofs = [proof for part in data.components for proof in part.proofs]
    ratios = _worst_ratios(proofs)
    records = manifest.proof.variants
    verified = [record for record in records if is_verified(record)]
    rest = [record for record in records if record not in verified]
    sentences = describe_variants(verified, BUILDING_HOST, records)
    proven = [
        text + ratios.get((record.component, record.variant), "")
        for record, text in zip(verified, sentences, strict=True)
    ]
    unproven = list(describe_variants(rest, BUILDING_HOST, records))
    proven += _name_owners(manifest, _describe_compared)
    proven += [f"{text}." for text in describe_pipeline(manifest.pipeline)]
    proven += [f"Host of the run: {host}." for host in dict.fromkeys(proof.host for proof in proofs) if host]
    proven.append(f"The manifest lists the size and SHA-256 of all {len(manifest.files)} files.")
    if not manifest.proof.variants:
        unproven.append("Nothing was run in the bundle's own runtime.")
    unproven += [
        f"Variant {manifest.label(part.record.name, name)}: {shortfall}."
        for part in data.components
        for name, shortfall in describe_shortfalls(part)
    ]
    unproven += _describe_unrun(manifest, proofs)
    unproven += _name_owners(manifest, _limits)
    if manifest.proof.level == "emulated":
        unproven.append("Times under emulation do not predict times on the device.")
    timed = {(part.record.name, measured.variant) for part in data.components for measured in part.measurements}
    if not timed:
        unproven.append(f"Speed was not measured: {data.unmeasured}.")
    else:
        unproven += _describe_untimed(manifest, timed)
    return tuple(proven), tuple(unproven)


def _name_owners(manifest: Manifest, read: Callable[[ComponentRecord], Iterable[str]]) -> list[str]:
    """What is said of each component, with its name where there are several; what holds for all of them once."""
    owners: dict[str, list[str]] = {}
    for component in manifest.components:
        for text in read(component):
            owners.setdefault(text, []).append(component.name)
    return [
        text if len(names) == len(manifest.components) else f"{', '.join(names)}: {text}"
        for text, names in owners.items()
    ]


def _describe_compared(component: ComponentRecord) -> list[str]:
    """How many outputs were compared, counting only comparisons that could have failed; empty for none."""
    count = len({check.after for check in component.checks})
    named = component.golden.outputs if component.golden else ()
    judged = sum(not output.unjudged for output in named)
    if not count or (named and not judged):
        return []
    whole = judged == len(named)
    subject, rest = ("Outputs", "") if whole else (f"{judged} of {len(named)} outputs", "; the rest cannot be judged")
    return [f"{subject} were compared with the original model's after {count} {_plural(count, 'stage')}{rest}."]


def _describe_unrun(manifest: Manifest, proofs: Iterable[VariantProof]) -> list[str]:
    """What the bundle supports and was not run with, each once with its variants."""
    owners: dict[tuple[str, ...], list[str]] = {}
    for proof in proofs:
        if proof.unrun:
            owners.setdefault(proof.unrun, []).append(manifest.label(proof.component, proof.variant))
    return [
        f"{_plural(len(names), 'Variant')} {', '.join(names)}: not run with {', '.join(unrun)}, "
        "which the bundle also supports."
        for unrun, names in owners.items()
    ]


def _worst_ratios(proofs: Iterable[VariantProof]) -> dict[tuple[str, str], str]:
    """The lowest SQNR of each component's variants in their own runtime, a sentence each: a device may round more than
    a stage.
    """
    found = {}
    for proof in proofs:
        outputs = proof.comparison.outputs if proof.comparison else ()
        ratios = [output.sqnr_db for output in outputs if output.sqnr_db is not None and math.isfinite(output.sqnr_db)]
        if ratios:
            found[proof.component, proof.variant] = f" Lowest SQNR of its outputs: {min(ratios):.3g} dB."
    return found


def collect_notes(part: ComponentReport) -> tuple[NoteRow, ...]:
    """The notes of the stages, warnings first."""
    rows = [
        NoteRow(origin=title_stage(outcome.stage), text=note.text, warning=note.level != "info")
        for outcome in order_outcomes(part.plan, part.outcomes)
        for note in outcome.notes
    ]
    return tuple(sorted(rows, key=lambda row: not row.warning))


def list_steps(part: ComponentReport) -> tuple[StepRow, ...]:
    """The executed steps."""
    steps = {step.id: step for step in part.plan.steps}
    records = {record.step: record for record in part.record.stages}
    rows = []
    for outcome in order_outcomes(part.plan, part.outcomes):
        step = steps.get(outcome.step)
        record = records.get(outcome.step)
        rows.append(
            StepRow(
                title=_title_step(outcome, steps),
                tag=show_tag(part, step.variant if step else None),
                environment=record.environment if record else "",
                result="from the cache" if outcome.cached else "ran",
                seconds=_show_seconds(outcome),
                key=outcome.key[:_KEY],
            )
        )
    return tuple(rows)


def list_phases(data: ReportData) -> tuple[StepRow, ...]:
    """What was done for the whole bundle, after the steps."""
    return tuple(
        StepRow(
            title=name.capitalize(),
            tag="",
            environment="",
            result="ran",
            seconds=format_milliseconds(seconds * 1000),
            key="",
        )
        for name, seconds in data.phases.items()
    )


def chart_files(files: Sequence[FileRecord]) -> BarChart:
    """The largest files of the bundle; all others share the last bar."""
    ranked = sorted(files, key=lambda record: (-record.size, record.path))
    shown, rest = ranked[:_SHOWN_FILES], ranked[_SHOWN_FILES:]
    entries = [(record.path, record.size) for record in shown]
    if rest:
        entries.append((f"{len(rest)} smaller files", sum(record.size for record in rest)))
    scale = linear_scale((float(size) for _, size in entries), lambda value: format_bytes(round(value)))
    return BarChart(
        scale=scale,
        bars=tuple(
            Bar(label=path, tag="", value=format_bytes(size), detail="", share=scale.place(size))
            for path, size in entries
        ),
    )


def _size_card(data: ReportData, part: ComponentReport) -> Card:
    before = part.record.model.size
    after = part.record.variants[0].size if part.record.variants else 0
    whole = f"; whole bundle {format_bytes(data.bundle_bytes)}" if data.manifest.sole else ""
    return Card(
        label="Model size",
        value=format_bytes(after),
        change=show_percent(after, before),
        detail=f"original {format_bytes(before)}{whole}",
        tone="good" if after < before * 0.995 else "plain",
    )


def _time_card(
    label: str, measured: Measurement, series: tuple[Sequence[float], Sequence[float]], unmeasured: str
) -> Card:
    then, now = (summarize_series(values) for values in series)
    if now is None:
        return Card(label=label, value="Not measured", change="", detail=unmeasured, tone="none")
    verdict, tone = compare_medians(then, now, measured.others)
    return Card(
        label=label,
        value=format_milliseconds(now.median),
        change=verdict,
        detail=_describe_medians(then, now),
        tone=tone,
    )


def _describe_medians(before: Spread | None, now: Spread) -> str:
    runs = count_things(now.count, "run")
    if before is None:
        return f"median of {runs}"
    both = f"medians of {runs} each" if before.count == now.count else f"medians of {before.count} and {runs}"
    return f"original model {format_milliseconds(before.median)}; {both}"


def _accuracy_card(part: ComponentReport) -> Card:
    checks = final_checks(part)
    outputs = _compared_outputs(part)
    samples = max((check.samples for check in checks), default=0)
    inputs = "synthetic " if judged_by_seeds(part.record) else ""
    detail = f"over {samples} {inputs}{_plural(samples, 'sample')}{_describe_host(part)}"
    if not outputs and checks:
        detail = f"no comparison could have failed, {detail}"
        return Card(label="Accuracy", value="Not judged", change="", detail=detail, tone="none")
    if not outputs:
        return Card(label="Accuracy", value="Not compared", change="", detail="no stage changed the model", tone="none")
    if all(output.equal for output in outputs):
        return Card(label="Accuracy", value="Equal", change="bit-identical", detail=detail, tone="good")
    least, error = least_decibels(outputs), greatest_error(outputs)
    value = f"SQNR {least:.0f} dB" if least is not None else show_error(error)
    return Card(
        label="Accuracy",
        value=value,
        change={True: "gate met", False: "gate not met", None: ""}[part.record.gate.passed],
        detail=f"largest absolute error {show_error(error)}, {detail}",
        tone={True: "good", False: "bad", None: "plain"}[part.record.gate.passed],
    )


def _compared_outputs(part: ComponentReport) -> list[OutputCheck]:
    """What could have failed: outputs of the models that ship, in the stages and in the bundle's own runtime."""
    return [*(output for check in final_checks(part) for output in judged_outputs(check)), *_proven_outputs(part)]


def _proven_outputs(part: ComponentReport) -> list[OutputCheck]:
    """The outputs of the bundle's own runtime, which may be less exact than those that the stages compared."""
    golden = part.record.golden
    unjudged = golden.unjudged if golden else {}
    return [
        check_output(output)
        for proof in part.proofs
        if proof.comparison
        for output in proof.comparison.outputs
        if output.name not in unjudged
    ]


def _describe_host(part: ComponentReport) -> str:
    """The variants whose figures come from the CPU, because their own provider was not run."""
    ran = {proof.variant for proof in part.proofs if proof.comparison}
    names = [variant.name for variant in part.plan.variants if variant.name not in ran and not _ran_here(part, variant)]
    return f"; for {', '.join(names)} on the CPU instead of its provider" if names else ""


def _ran_here(part: ComponentReport, variant: VariantPlan) -> bool:
    """Whether the stages compared outputs of its first provider: the CPU, or a library of the device."""
    provider = variant.providers[0].name
    compared = (step for step in part.plan.steps if step.id in variant.comparisons)
    sessions = (step.options.get("providers") or () for step in compared)
    return provider == CPU.runtime_name or any(provider == name for session in sessions for name, _ in session)


def judged_by_seeds(component: ComponentRecord) -> bool:
    """Whether the build was judged without real samples."""
    return component.synthetic_inputs and (component.golden is None or component.golden.inputs != "like-samples")


def _describe_untimed(manifest: Manifest, timed: set[tuple[str, str]]) -> list[str]:
    ran = [(record.component, record.variant) for record in manifest.proof.variants if record.passed]
    return [f"Variant {manifest.label(*pair)} was not timed here." for pair in ran if pair not in timed]


def _limits(component: ComponentRecord) -> list[str]:
    limits = [f"Not for shipping: {reason}." for reason in component.reservations]
    limits += [
        f"{text[:1].upper()}{text[1:].rstrip('.')}." for text in describe_doubts(component, repeated="synthetic")
    ]
    golden = component.golden
    if golden is not None and golden.inputs == "like-samples":
        limits.append(
            f"The golden set in the bundle has seeded inputs; the build was judged on {golden.judging} real "
            "samples, which are not in the bundle."
        )
    elif component.synthetic_inputs:
        limits.append(
            "The golden inputs are synthetic: they show that the outputs match the original model's, not that the "
            "model is accurate on your data. Use --samples for real inputs."
        )
    if component.unstable_outputs:
        names = ", ".join(component.unstable_outputs)
        limits.append(f"Only names, types and shapes were compared for outputs of random operators: {names}.")
    return limits


def _title_step(outcome: StepOutcome, steps: Mapping[str, Step]) -> str:
    """The step's title, and for a comparison also the step that it checks."""
    step = steps.get(outcome.step)
    checked = steps.get(step.inputs.get("model", "")) if step and outcome.stage == "compare" else None
    title = title_step(step) if step else title_stage(outcome.stage)
    return f"{title}, after {title_step(checked)}" if checked else title


def _show_seconds(outcome: StepOutcome) -> str:
    return format_milliseconds(outcome.seconds * 1000)


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
