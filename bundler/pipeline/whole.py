"""The user's own pipeline over all components of a bundle: its answers must be those of the original models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bundler.emitters.python.names import RESERVED_INPUTS, RESERVED_OUTPUTS, make_identifiers
from bundler.execution.sources import Source, digest_source, source_of
from bundler.model.errors import GateError, UsageError
from bundler.model.events import Reporter
from bundler.model.manifest import PipelineMetricRecord, PipelineRecord
from bundler.model.plan import MODEL, Step, VariantPlan
from bundler.pipeline.built import BuiltPart
from bundler.pipeline.companions import list_companions
from bundler.pipeline.pipeline_packages import name_judging, prepare_judging
from bundler.pipeline.prepare import Prepared, PreparedBundle
from bundler.pipeline.requests import PipelineMetric, PipelineRequest
from bundler.pipeline.workspace import Workspace
from bundler.stages.measure_metric.spec import Facts as MetricFacts
from bundler.stages.run_pipeline.spec import SPEC, Facts
from bundler.verification.metric import MetricGate, check_metric

_SESSION = ("providers", "session", "session_config", "disabled_optimizers")
"""Options of a comparison that say how the variant's session is created here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """One variant of each component, and the comparison that says how it is run here."""

    name: str
    variants: Mapping[str, VariantPlan]
    comparisons: Mapping[str, Step]

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Components that only emulation can run here: the pipeline is not run with these variants."""
        return tuple(name for name, step in self.comparisons.items() if step.options.get("plugins"))


def judge_pipeline(
    prepared: PreparedBundle, parts: tuple[BuiltPart, ...], workspace: Workspace, reporter: Reporter
) -> tuple[PipelineRecord, ...]:
    """What the request's pipeline answers with each variant that runs here; empty where it names none.

    Raises `UsageError` for a function or samples that are not there or cannot be used, and `GateError` where fewer
    answers are equal than is asked for.
    """
    asked = prepared.request.pipeline
    if asked is None:
        return ()
    sources = _find_sources(asked, parts, workspace)
    prepare_judging(asked.requires, workspace.environments, reporter)
    records = []
    for choice in _list_choices(prepared.parts):
        elsewhere = choice.elsewhere
        if elsewhere:
            reporter.say(f"your pipeline was not run with variant {choice.name}: {elsewhere[0]} runs in emulation here")
            continue
        step = _make_step(asked, choice, prepared.parts)
        models = {
            f"{part.prepared.plan.name}/{step_id}": source_of(part.outcomes[step_id])
            for part in parts
            for step_id in (choice.comparisons[part.prepared.plan.name].inputs["model"], part.prepared.plan.golden)
            if step_id in part.outcomes
        }
        found = workspace.executor.execute((step,), {**sources, **models}, reporter)[step.id].read_facts(Facts)
        records.append(_judge(asked, choice.name, found, sources, prepared.title))
    return tuple(records)


def list_pipeline_steps(prepared: PreparedBundle) -> tuple[Step, ...]:
    """The steps that run the request's pipeline here, one for each variant; empty where it names none."""
    asked = prepared.request.pipeline
    if asked is None:
        return ()
    choices = [choice for choice in _list_choices(prepared.parts) if not choice.elsewhere]
    return tuple(_make_step(asked, choice, prepared.parts) for choice in choices)


def _find_sources(asked: PipelineRequest, parts: tuple[BuiltPart, ...], workspace: Workspace) -> dict[str, Source]:
    metric = asked.metric
    if metric is not None and not metric.file.is_file():
        raise UsageError(
            f"there is no file {metric.file} with the metric", hint="pipeline.metric.python is relative to bundler.toml"
        )
    if not asked.file.is_file():
        raise UsageError(
            f"there is no file {asked.file} with the pipeline", hint="pipeline.python is relative to bundler.toml"
        )
    if not asked.samples.is_dir():
        raise UsageError(
            f"there is no folder {asked.samples} with samples for the pipeline", hint="each file in it is a sample"
        )
    return {
        "function": digest_source(asked.file, list_companions(asked.file, asked.files).values(), workspace.cache),
        "samples": digest_source(asked.samples, (), workspace.cache),
        **({"metric": digest_source(metric.file, (), workspace.cache)} if metric else {}),
        **{f"{part.prepared.plan.name}/{MODEL}": part.prepared.sources[MODEL] for part in parts},
    }


def _list_choices(parts: tuple[Prepared, ...]) -> Iterator[_Choice]:
    """For each name of a variant, that variant of each component, or its last, which runs everywhere."""
    names = dict.fromkeys(variant.name for part in parts for variant in part.plan.variants)
    for name in names:
        variants = {}
        comparisons = {}
        for part in parts:
            plan = part.plan
            variant = next((variant for variant in plan.variants if variant.name == name), plan.variants[-1])
            variants[plan.name] = variant
            comparisons[plan.name] = plan.step(variant.comparisons[-1])
        yield _Choice(name=name, variants=variants, comparisons=comparisons)


def _make_step(asked: PipelineRequest, choice: _Choice, parts: tuple[Prepared, ...]) -> Step:
    names = [part.plan.name for part in parts]
    return Step(
        id=f"pipeline/{choice.name}",
        stage=SPEC.name,
        inputs={
            "function": "function",
            "samples": "samples",
            **({"metric": "metric"} if asked.metric else {}),
            **{f"golden.{part.plan.name}": f"{part.plan.name}/{part.plan.golden}" for part in parts if part.plan.state},
            **{f"original.{name}": f"{name}/{MODEL}" for name in names},
            **{f"model.{name}": f"{name}/{choice.comparisons[name].inputs['model']}" for name in names},
        },
        options={
            "entry": asked.entry,
            "absolute": asked.absolute,
            "relative": asked.relative,
            **({"metric": asked.metric.entry} if asked.metric else {}),
            "components": [_describe_component(part, choice) for part in parts],
        },
        environment=name_judging(asked.requires),
        title=f"Run your pipeline with variant {choice.name}",
        reason="the project names it",
    )


def _describe_component(part: Prepared, choice: _Choice) -> dict[str, Any]:
    """The component's ports as the loader of a Python bundle names them, and its session."""
    plan, signature = part.plan, part.facts.signature
    inputs = [port.name for port in signature.inputs]
    outputs = [port.name for port in signature.outputs]
    options = choice.comparisons[plan.name].options
    return {
        "name": plan.name,
        "inputs": dict(zip(make_identifiers(inputs, "input", RESERVED_INPUTS), inputs, strict=True)),
        "outputs": dict(zip(make_identifiers(outputs, "output", RESERVED_OUTPUTS), outputs, strict=True)),
        **{key: options[key] for key in _SESSION if key in options},
    }


def _judge(
    asked: PipelineRequest, variant: str, found: Facts, sources: Mapping[str, Source], title: str
) -> PipelineRecord:
    digests = {file.path: file.sha256 for file in sources["function"].files}
    record = PipelineRecord(
        variant=variant,
        function=_name_function(asked),
        sha256=digests.pop(asked.file.name),
        files=digests,
        samples=found.samples,
        equal=found.equal,
        least=asked.least,
        max_absolute=found.max_absolute,
        absolute=asked.absolute,
        relative=asked.relative,
        uncalled=found.uncalled,
        unnoticed=found.unnoticed,
        metric=_record_metric(asked.metric, found, sources),
        requires=asked.requires,
    )
    missed = [f"{found.equal} of {found.samples} answers match (min {asked.least:.0%})"]
    missed = missed if found.equal < asked.least * found.samples else []
    if record.metric is not None:
        measured = MetricFacts(value=record.metric.value, reference=record.metric.reference, samples=found.samples)
        gate = MetricGate(least=record.metric.least, drop=record.metric.drop)
        missed += check_metric(f"metric {record.metric.function}", measured, gate)
    if missed:
        raise GateError(
            f"{title}: the answers of your pipeline with variant {variant} differ from those with the original models",
            details=(*missed, *found.differences),
            hint="choose another precision for the component that causes the difference, or widen pipeline.least, "
            "pipeline.absolute, pipeline.relative or the limits of pipeline.metric",
        )
    return record


def _record_metric(
    metric: PipelineMetric | None, found: Facts, sources: Mapping[str, Source]
) -> PipelineMetricRecord | None:
    if metric is None or found.value is None or found.reference is None:
        return None
    return PipelineMetricRecord(
        function=_name_function(metric),
        sha256=sources["metric"].files[0].sha256,
        value=found.value,
        reference=found.reference,
        least=metric.least,
        drop=metric.drop,
    )


def _name_function(given: PipelineRequest | PipelineMetric) -> str:
    return f"{given.file.name}:{given.entry.rpartition(':')[2]}"
