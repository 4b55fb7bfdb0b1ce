"""The user's own pipeline over all components of a bundle: its answers must be those of the original models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bundler.emitters.python.names import RESERVED_INPUTS, RESERVED_OUTPUTS, make_identifiers
from bundler.execution.sources import Source, digest_source, source_of
from bundler.model.errors import GateError, UsageError
from bundler.model.events import Reporter
from bundler.model.manifest import PipelineRecord
from bundler.model.plan import MODEL, Step, VariantPlan
from bundler.pipeline.built import BuiltPart
from bundler.pipeline.prepare import PreparedBundle
from bundler.pipeline.requests import PipelineRequest
from bundler.pipeline.workspace import Workspace
from bundler.stages.run_pipeline.spec import SPEC, Facts

_SESSION = ("providers", "session", "session_config", "disabled_optimizers")
"""Options of a comparison that say how the variant's session is created here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """One variant of each component, and the comparison that says how it is run here."""

    name: str
    variants: Mapping[str, VariantPlan]
    comparisons: Mapping[str, Step]


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
    records = []
    for choice in _list_choices(parts):
        elsewhere = [name for name, step in choice.comparisons.items() if step.options.get("plugins")]
        if elsewhere:
            reporter.say(f"your pipeline was not run with variant {choice.name}: {elsewhere[0]} runs in emulation here")
            continue
        step = _make_step(asked, choice, parts)
        models = {
            f"{part.prepared.plan.name}/{step_id}": source_of(part.outcomes[step_id])
            for part in parts
            for step_id in [choice.comparisons[part.prepared.plan.name].inputs["model"]]
            if step_id in part.outcomes
        }
        found = workspace.executor.execute((step,), {**sources, **models}, reporter)[step.id].read_facts(Facts)
        digest = sources["function"].files[0].sha256
        records.append(_judge(asked, choice.name, found, digest, prepared.title))
    return tuple(records)


def _find_sources(asked: PipelineRequest, parts: tuple[BuiltPart, ...], workspace: Workspace) -> dict[str, Source]:
    if not asked.file.is_file():
        raise UsageError(
            f"there is no file {asked.file} with the pipeline", hint="pipeline.python is relative to bundler.toml"
        )
    if not asked.samples.is_dir():
        raise UsageError(
            f"there is no folder {asked.samples} with samples for the pipeline", hint="each file in it is a sample"
        )
    return {
        "function": digest_source(asked.file, (), workspace.cache),
        "samples": digest_source(asked.samples, (), workspace.cache),
        **{f"{part.prepared.plan.name}/{MODEL}": part.prepared.sources[MODEL] for part in parts},
    }


def _list_choices(parts: tuple[BuiltPart, ...]) -> Iterator[_Choice]:
    """For each name of a variant, that variant of each component, or its last, which runs everywhere."""
    names = dict.fromkeys(variant.name for part in parts for variant in part.prepared.plan.variants)
    for name in names:
        variants = {}
        comparisons = {}
        for part in parts:
            plan = part.prepared.plan
            variant = next((variant for variant in plan.variants if variant.name == name), plan.variants[-1])
            variants[plan.name] = variant
            comparisons[plan.name] = plan.step(variant.comparisons[-1])
        yield _Choice(name=name, variants=variants, comparisons=comparisons)


def _make_step(asked: PipelineRequest, choice: _Choice, parts: tuple[BuiltPart, ...]) -> Step:
    names = [part.prepared.plan.name for part in parts]
    return Step(
        id=f"pipeline/{choice.name}",
        stage=SPEC.name,
        inputs={
            "function": "function",
            "samples": "samples",
            **{f"original.{name}": f"{name}/{MODEL}" for name in names},
            **{f"model.{name}": f"{name}/{choice.comparisons[name].inputs['model']}" for name in names},
        },
        options={
            "entry": asked.entry,
            "absolute": asked.absolute,
            "relative": asked.relative,
            "components": [_describe_component(part, choice) for part in parts],
        },
        title=f"Run your pipeline with variant {choice.name}",
        reason="the project names it",
    )


def _describe_component(part: BuiltPart, choice: _Choice) -> dict[str, Any]:
    """The component's ports as the loader of a Python bundle names them, and its session."""
    plan, signature = part.prepared.plan, part.prepared.facts.signature
    inputs = [port.name for port in signature.inputs]
    outputs = [port.name for port in signature.outputs]
    options = choice.comparisons[plan.name].options
    return {
        "name": plan.name,
        "inputs": dict(zip(make_identifiers(inputs, "input", RESERVED_INPUTS), inputs, strict=True)),
        "outputs": dict(zip(make_identifiers(outputs, "output", RESERVED_OUTPUTS), outputs, strict=True)),
        **{key: options[key] for key in _SESSION if key in options},
    }


def _judge(asked: PipelineRequest, variant: str, found: Facts, digest: str, title: str) -> PipelineRecord:
    if found.equal < asked.least * found.samples:
        raise GateError(
            f"{title}: your pipeline answers otherwise with variant {variant} than with the original models",
            details=(
                f"{found.equal} of {found.samples} answers are equal, and {asked.least:.0%} have to be",
                *found.differences,
            ),
            hint="choose another precision for the component that answers otherwise, or widen pipeline.least, "
            "pipeline.absolute or pipeline.relative",
        )
    return PipelineRecord(
        variant=variant,
        function=f"{asked.file.name}:{asked.entry.rpartition(':')[2]}",
        sha256=digest,
        samples=found.samples,
        equal=found.equal,
        least=asked.least,
        max_absolute=found.max_absolute,
        absolute=asked.absolute,
        relative=asked.relative,
    )
