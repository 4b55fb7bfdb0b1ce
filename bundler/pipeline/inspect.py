"""`inspect`: the facts of a model, the targets that it fits, and the obstacles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bundler.model.errors import BundlerError
from bundler.model.events import Listener
from bundler.model.facts import ModelFacts
from bundler.pipeline.opening import open_model
from bundler.pipeline.prepare import check_signature
from bundler.pipeline.requests import BuildRequest
from bundler.pipeline.workspace import Workspace
from bundler.planning.plan import make_plan
from bundler.planning.request import PlanRequest
from bundler.planning.rules import find_obstacles
from bundler.planning.settle import settle_profile
from bundler.profiles.resolve import resolve_target, target_ids


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFit:
    """Whether a target can take the model. `obstacles` say why not, `remarks` what a build will do."""

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


def inspect_model(path: Path, workspace: Workspace, listener: Listener) -> Inspection:
    """Inspect a model without running it; one that is no ONNX file yet is exported. Raises `ModelError`."""
    model = open_model(BuildRequest(model=path, target=""), "", workspace, listener)
    fits = tuple(_fit(model.facts, target) for target in target_ids())
    notes = tuple(note.text for note in model.outcomes[-1].notes)
    return Inspection(facts=model.facts, digest=model.source.digest, notes=notes, targets=fits)


def _fit(facts: ModelFacts, target: str) -> TargetFit:
    profile, request = resolve_target(target), PlanRequest()
    obstacles = find_obstacles(facts, profile)
    remarks: tuple[str, ...] = ()
    try:
        check_signature(facts, profile, None)
        decisions = make_plan(settle_profile(profile, facts, request), request).decisions
        remarks = tuple(f"{decision.subject}: {decision.choice} ({decision.reason})" for decision in decisions)
    except BundlerError as error:  # what a build would stop at: sizes that must be fixed, for example
        obstacles = (*obstacles, "; ".join(filter(None, (error.message, *error.details, error.hint))))
    return TargetFit(target=profile.id, title=profile.title, fits=not obstacles, obstacles=obstacles, remarks=remarks)
