"""`inspect`: what a model is, which targets fit it, and what stands in the way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bundler.model.errors import BundlerError
from bundler.model.events import Listener
from bundler.model.facts import ModelFacts
from bundler.pipeline.prepare import inspect_source
from bundler.pipeline.requests import BuildRequest, bundle_name
from bundler.pipeline.sources import export_model, is_reference, parse_reference
from bundler.pipeline.workshop import Workshop
from bundler.planning.fit import leave_out
from bundler.planning.plan import PlanRequest, make_plan
from bundler.planning.rules import find_obstacles
from bundler.profiles.resolve import resolve_target, target_ids


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFit:
    """Whether a target can take the model. `obstacles` say what stands in the way, `remarks` what a build will do."""

    target: str
    title: str
    fits: bool
    obstacles: tuple[str, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A model's facts, its digest, and how it fits each target. `notes` are the inspection's own."""

    facts: ModelFacts
    digest: str
    notes: tuple[str, ...]
    targets: tuple[TargetFit, ...]


def inspect_model(path: Path, workshop: Workshop, listener: Listener) -> Inspection:
    """Inspect a model without running it; one that is no ONNX file yet is exported. Raises `ModelError`."""
    name = bundle_name(BuildRequest(model=path, target=""))
    if is_reference(str(path)):
        reference = parse_reference(str(path))
        name = bundle_name(BuildRequest(model=Path(reference.name), target=""))
        path = export_model(reference, workshop, listener, name).source.path
    facts, outcome, source = inspect_source(path, name, workshop, listener, name)
    fits = tuple(_fit(facts, target) for target in target_ids())
    return Inspection(facts=facts, digest=source.digest, notes=tuple(note.text for note in outcome.notes), targets=fits)


def _fit(facts: ModelFacts, target: str) -> TargetFit:
    profile, left_out = leave_out(resolve_target(target))
    obstacles = find_obstacles(facts, profile)
    remarks: tuple[str, ...] = ()
    try:
        decisions = make_plan(facts, profile, PlanRequest(left_out=left_out)).decisions
        remarks = tuple(f"{decision.subject}: {decision.choice} ({decision.reason})" for decision in decisions)
    except BundlerError as error:  # what a build would stop at: sizes that must be fixed, for example
        obstacles = (*obstacles, "; ".join(filter(None, (error.message, *error.details, error.hint))))
    return TargetFit(target=profile.id, title=profile.title, fits=not obstacles, obstacles=obstacles, remarks=remarks)
