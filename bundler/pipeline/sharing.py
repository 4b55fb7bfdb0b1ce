"""Weights that models of a bundle have in common are stored once: over all variants, and over all components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bundler.execution.sources import source_of
from bundler.model.artifacts import make_artifact
from bundler.model.errors import StageError
from bundler.model.events import Reporter
from bundler.model.plan import Step
from bundler.model.results import StepOutcome
from bundler.pipeline.built import BuiltPart
from bundler.pipeline.workspace import Workspace
from bundler.stages.share_weights.spec import SPEC, Facts, SharedModel

MIN_MODEL_BYTES = 1_000_000
"""Smaller models are stored whole: they load faster so."""

MEGABYTE = 1_000_000


def share_weights(parts: Sequence[BuiltPart], workspace: Workspace, reporter: Reporter) -> list[BuiltPart]:
    """The components, with models whose common weights are stored once. They stay as they are where fewer than two
    models could share any, and for browsers: there a variant's model is one download.
    """
    models = {
        part.prepared.label(variant.name): part.outcomes[variant.model]
        for part in parts
        for variant in part.prepared.plan.variants
        if not variant.compiled and _may_share(part.outcomes[variant.model])
    }
    first = {model.path: label for label, model in reversed(models.items())}  # equal models are one already
    labels = sorted(first.values())
    if len(labels) <= 1 or parts[0].prepared.profile.platform.system == "web":
        return list(parts)
    step = Step(
        id=SPEC.name,
        stage=SPEC.name,
        inputs={label: label for label in labels},
        options={"names": {label: label.replace("/", "-") for label in labels}},
        reason="variants and components may hold equal weights",
    )
    sources = {label: source_of(models[label]) for label in labels}
    outcome = workspace.executor.execute((step,), sources, reporter)[step.id]
    facts = outcome.read_facts(Facts)
    if not facts.models:
        return list(parts)
    reporter.say(f"{', '.join(facts.models)} share weights: {facts.saved / MEGABYTE:.1f} MB are stored once")
    made = {models[label].path: _pick(outcome, model) for label, model in facts.models.items()}
    return [_take(part, outcome, made) for part in parts]


def _may_share(model: StepOutcome) -> bool:
    """Whether it is an ONNX file (those in ORT format hold their weights) with enough in it."""
    return (
        model.artifact is not None
        and model.entry is not None
        and model.path.suffix == ".onnx"
        and model.artifact.size >= MIN_MODEL_BYTES
    )


def _pick(outcome: StepOutcome, model: SharedModel) -> StepOutcome:
    """One of the models that the step made, with the files that it reads. Raises `StageError` for others."""
    records = {record.path: record for record in outcome.artifact.files} if outcome.artifact else {}
    if not {model.entry, *model.files} <= records.keys():
        raise StageError(f"{outcome.step} names files that it did not write")
    return replace(outcome, artifact=make_artifact(tuple(records[name] for name in model.files)), entry=model.entry)


def _take(part: BuiltPart, outcome: StepOutcome, made: Mapping[Path, StepOutcome]) -> BuiltPart:
    variants = {variant.name: part.outcomes[variant.model] for variant in part.prepared.plan.variants}
    shared = {
        name: made[model.path] for name, model in variants.items() if model.entry is not None and model.path in made
    }
    return part.taking(shared, outcome) if shared else part
