"""From a request to a plan: the profile resolved, the model inspected, the profile settled for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bundler.devices.contract import Opening
from bundler.devices.registry import check_device, open_device
from bundler.emitters.contract import Runnable
from bundler.emitters.registry import check_format, find_writer
from bundler.execution.executor import Source
from bundler.model.attempts import Frontier, RecordedChoice
from bundler.model.errors import UsageError
from bundler.model.events import Listener, Reporter
from bundler.model.facts import ModelFacts
from bundler.model.plan import MODEL, BuildPlan, Decision
from bundler.model.results import StepOutcome
from bundler.pipeline.given import GivenData, read_given
from bundler.pipeline.opening import name_model, open_model
from bundler.pipeline.package_names import identify_package
from bundler.pipeline.requests import BuildRequest, profile_overrides, repeat_command
from bundler.pipeline.workspace import Workspace
from bundler.planning.plan import make_plan
from bundler.planning.request import PlanRequest
from bundler.planning.settle import SettledProfile, leave_out, settle_profile
from bundler.profiles.commands import check_commands
from bundler.profiles.overrides import ORIGIN
from bundler.profiles.resolve import Resolved, resolve_layers
from bundler.profiles.schema import TargetProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request with all that planning found. `title` names the build in messages. `facts` are those of the model as it
    was given, and `settled` has what this build uses of its target. `earlier` are the outcomes of the steps before the
    plan: the export, where there was one, and the inspection.

    `frontiers` are what was tried to choose precisions, and `decisions` the record of it by variant, for a lock.
    """

    request: BuildRequest
    title: str
    facts: ModelFacts
    settled: SettledProfile
    earlier: tuple[StepOutcome, ...]
    sources: Mapping[str, Source]
    plan: BuildPlan
    plan_request: PlanRequest
    frontiers: tuple[Frontier, ...] = ()
    decisions: Mapping[str, RecordedChoice] = field(default_factory=dict)

    @property
    def profile(self) -> TargetProfile:
        """The target as this build uses it."""
        return self.settled.profile


def prepare(request: BuildRequest, workspace: Workspace, listener: Listener) -> Prepared:
    """Resolve, inspect, settle and plan. Raises `ProfileError`, `ModelError` or `UsageError`."""
    resolved = _resolve(request, listener)
    _check_device(request, resolved.profile, workspace, listener)
    command = repeat_command(request, sandbox=workspace.sandbox is not None)
    request = _name_package(request, resolved.profile, listener)
    model = open_model(request, resolved.profile.id, workspace, listener)
    data = read_given(request, resolved.profile, workspace)
    plan_request = _plan_request(request, data, resolved, command)
    settled = settle_profile(resolved.profile, model.facts, plan_request)
    return Prepared(
        request=request,
        title=model.title,
        facts=model.facts,
        settled=settled,
        earlier=model.outcomes,
        sources={MODEL: model.source, **data.sources},
        plan=plan_bundle(settled, plan_request),
        plan_request=plan_request,
    )


def _resolve(request: BuildRequest, listener: Listener) -> Resolved:
    """The target, checked; variants that the bundle will not have are reported before anything takes time."""
    resolved = resolve_layers(request.target, request.overrides)
    if request.python:
        resolved = _choose_pythons(request, resolved, listener)
    if not request.trust_target:
        check_commands(resolved)
    profile = resolved.profile
    _, left_out = leave_out(profile)
    chosen = request.format or profile.bundle.format
    check_format(profile.id, profile.bundle.ecosystem, chosen, project=request.project)
    for text in describe_left_out(left_out):
        Reporter(listener, profile.id).warn(text)
    return resolved


def _choose_pythons(request: BuildRequest, resolved: Resolved, listener: Listener) -> Resolved:
    """The target with the given Pythons. Where its bundle is no Python package they change nothing, which is reported
    unless a project file says them for all targets of a model.
    """
    profile = resolved.profile
    if find_writer(profile.bundle.ecosystem, request.format or profile.bundle.format).name == "python":
        return resolve_layers(request.target, profile_overrides(request))
    if not request.project:
        Reporter(listener, profile.id).warn("--python changes nothing here: this bundle is no Python package")
    return resolved


def _check_device(request: BuildRequest, profile: TargetProfile, workspace: Workspace, listener: Listener) -> None:
    """Whether the bundle can be run where it is asked for, before anything takes time."""
    if request.measure and not request.prove:
        raise UsageError("--measure times the bundle, and --no-prove does not run it", hint="leave one of them away")
    if request.on is None:
        return
    if not request.prove:
        raise UsageError(
            "--on says where the bundle is run, and --no-prove runs it nowhere", hint="leave one of them away"
        )
    check_device(request.on, workspace.cache.root)
    emitter = find_writer(profile.bundle.ecosystem, request.format or profile.bundle.format)
    if isinstance(emitter, Runnable):
        opening = Opening(
            need=emitter.state_need(profile),
            cache_root=workspace.cache.root,
            say=Reporter(listener, profile.id).say,
            sandbox=workspace.sandbox,
        )
        with open_device(request.on, opening):
            pass


def _name_package(request: BuildRequest, profile: TargetProfile, listener: Listener) -> BuildRequest:
    """The request with the package's name and version as its ecosystem writes them. Raises `UsageError`: before
    anything is built that no tool could install.
    """
    name = name_model(request)
    asked, identity = identify_package(request, name, profile)
    reformed = f"version {request.version} is written {identity.version} in the package"
    notes = (*identity.warnings, *((reformed,) if identity.version != request.version else ()))
    for text in notes:
        Reporter(listener, f"{name} → {profile.id}").warn(text)
    return replace(request, version=identity.version, package_name=asked)


def describe_left_out(left_out: Sequence[Decision]) -> tuple[str, ...]:
    """A sentence for each variant of the target that the bundle will not have."""
    return tuple(
        f"the bundle will not have {decision.subject}, which the target has: {decision.reason}" for decision in left_out
    )


def plan_bundle(settled: SettledProfile, request: PlanRequest) -> BuildPlan:
    """The plan, with the emitter that writes its format."""
    plan = make_plan(settled, request)
    return replace(plan, emitter=find_writer(plan.emitter, plan.format).name)


def _own_names(resolved: Resolved, table: str) -> tuple[str, ...]:
    """Names in a table of the profile that are there because the user put them there."""
    names: Mapping[str, Any] = getattr(resolved.profile, table)
    return tuple(name for name in names if resolved.layered.origin((table, name)) == ORIGIN)


def _plan_request(request: BuildRequest, data: GivenData, resolved: Resolved, command: tuple[str, ...]) -> PlanRequest:
    return PlanRequest(
        own_dimensions=_own_names(resolved, "dimensions"),
        own_shapes=_own_names(resolved, "shapes"),
        dimensions=request.dimensions,
        shapes=request.shapes,
        format=request.format,
        samples=data.samples,
        calibration=data.calibration,
        synthetic_count=request.synthetic_count,
        seed=request.seed,
        golden=request.golden,
        command=command,
        project=request.project,
    )
