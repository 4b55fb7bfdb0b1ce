"""From a request to a plan: the profile resolved, the model inspected, the profile settled for it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from bundler.devices.contract import Opening
from bundler.devices.registry import check_device, open_device
from bundler.emitters.contract import Runnable, Selective
from bundler.emitters.registry import check_format, find_writer
from bundler.execution.executor import Source
from bundler.model.attempts import Frontier, RecordedChoice
from bundler.model.errors import BundlerError, OpenSizesError, UsageError
from bundler.model.events import Listener, Reporter, ignore
from bundler.model.facts import ModelFacts
from bundler.model.plan import MODEL, ORIGINAL, BuildPlan, ComponentPlan, Decision
from bundler.model.results import StepOutcome
from bundler.pipeline.given import GivenData, read_given
from bundler.pipeline.opening import name_after_file, name_model, open_model
from bundler.pipeline.package_names import identify_package, warn_of_no_name
from bundler.pipeline.parallel import run_each
from bundler.pipeline.requests import (
    BuildRequest,
    list_parts,
    profile_overrides,
    repeat_command,
    target_overrides,
)
from bundler.pipeline.running_sizes import SizeTrial, name_running_sizes
from bundler.pipeline.shapes import assign_sizes
from bundler.pipeline.workspace import Workspace
from bundler.planning.plan import make_plan
from bundler.planning.request import PlanRequest
from bundler.planning.settle import SettledProfile, leave_out, settle_profile
from bundler.profiles.commands import check_commands
from bundler.profiles.overrides import ORIGIN
from bundler.profiles.resolve import Resolved, resolve_layers
from bundler.profiles.schema import TargetProfile
from bundler.support.text import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One component's request with all that planning found. `title` names it in messages, and `prefix` is put before
    the names of its variants, empty in a bundle of one model. `facts` are those of the model as it was given, under its
    new names, and `settled` has what this build uses of its target. `earlier` are the outcomes of the steps before the
    plan: the export, where there was one, the inspection, and the renaming.

    `frontiers` are what was tried to choose precisions, and `decisions` the record of it by variant, for a lock.
    """

    request: BuildRequest
    bundle: str
    title: str
    facts: ModelFacts
    settled: SettledProfile
    earlier: tuple[StepOutcome, ...]
    sources: Mapping[str, Source]
    plan: ComponentPlan
    plan_request: PlanRequest
    frontiers: tuple[Frontier, ...] = ()
    decisions: Mapping[str, RecordedChoice] = field(default_factory=dict)
    prefix: str = ""

    @property
    def profile(self) -> TargetProfile:
        """The target as this component uses it."""
        return self.settled.profile

    def label(self, name: str) -> str:
        """The name of a variant or a step as people read it: with its component where there are several."""
        return f"{self.prefix}{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedBundle:
    """A request with its components, each prepared. `request` has the package's name and version as its ecosystem
    writes them, `title` names the build in messages, and `profile` is the target as its first component uses it.
    """

    request: BuildRequest
    name: str
    title: str
    emitter: str
    format: str
    parts: tuple[Prepared, ...]

    @property
    def profile(self) -> TargetProfile:
        """The target; what belongs to the bundle is the same for all of its components."""
        return self.parts[0].profile

    @property
    def plan(self) -> BuildPlan:
        """The plan of the whole."""
        return BuildPlan(
            name=self.name,
            target=self.profile.id,
            emitter=self.emitter,
            format=self.format,
            components=tuple(part.plan for part in self.parts),
            together=self.request.together,
        )


def prepare(request: BuildRequest, workspace: Workspace, listener: Listener) -> PreparedBundle:
    """Resolve, inspect, settle and plan. Raises `ProfileError`, `ModelError` or `UsageError`."""
    resolved = _resolve(request, listener)
    profile = resolved.profile
    _check_device(request, profile, workspace, listener)
    command = repeat_command(request, sandbox=workspace.sandbox is not None)
    request = _name_package(request, profile, listener)
    parts = assign_sizes(list_parts(request), profile.id, workspace, listener)
    bundle = _BundleContext(
        request=request,
        resolved=resolved,
        name=name_model(request),
        command=command,
        several=len(parts) > 1,
        workspace=workspace,
    )
    prepared = run_each(
        lambda name: _prepare_component(parts[name], name, bundle, listener), tuple(parts), workspace.executor
    )
    _check_common(prepared)
    _check_together(prepared, request.together)
    chosen = request.format or profile.bundle.format
    return PreparedBundle(
        request=request,
        name=bundle.name,
        title=f"{bundle.name} → {profile.id}",
        emitter=find_writer(profile.bundle.ecosystem, chosen).name,
        format=chosen,
        parts=tuple(prepared),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _BundleContext:
    """What the components of one bundle share: the target as `request` has it, for those that change nothing more;
    `command` is the user's, as hints repeat it.
    """

    request: BuildRequest
    resolved: Resolved
    name: str
    command: tuple[str, ...]
    several: bool
    workspace: Workspace


def _prepare_component(request: BuildRequest, name: str, bundle: _BundleContext, listener: Listener) -> Prepared:
    with name_component(name if bundle.several else ""):
        return _prepare_named(request, name, bundle, listener)


def _prepare_named(request: BuildRequest, name: str, bundle: _BundleContext, listener: Listener) -> Prepared:
    same = profile_overrides(request) == profile_overrides(bundle.request)
    resolved = bundle.resolved if same else _resolve(request, ignore)
    target = resolved.profile.id
    title = f"{bundle.name}/{name} → {target}" if bundle.several else f"{bundle.name} → {target}"
    model = open_model(name_after_file(request, several=bundle.several), target, bundle.workspace, listener, title)
    check_signature(model.facts, resolved.profile, request.format)
    data = read_given(request, resolved.profile, bundle.workspace)
    plan_request = _plan_request(request, data, resolved, bundle.command, name)
    settled = settle_profile(resolved.profile, model.facts, plan_request)
    try:
        plan = make_plan(settled, plan_request)
    except OpenSizesError as error:
        trial = SizeTrial(source=model.source, facts=model.facts, fixed=settled.fixed, asker=plan_request.asker)
        raise name_running_sizes(error, trial, bundle.workspace, Reporter(listener, title)) from error
    _, known = leave_out(resolved.profile)
    for text in describe_left_out([decision for decision in settled.left_out if decision not in known]):
        Reporter(listener, title).warn(text)
    return Prepared(
        request=request,
        bundle=bundle.name,
        title=title,
        facts=model.facts,
        settled=settled,
        earlier=model.outcomes,
        sources={MODEL: model.source, **({ORIGINAL: model.original} if model.original else {}), **data.sources},
        plan=plan,
        plan_request=plan_request,
        prefix=f"{name}/" if bundle.several else "",
    )


def check_signature(facts: ModelFacts, profile: TargetProfile, asked_format: str | None) -> None:
    """Raise `UsageError` where the loader of this format cannot hold an input or output of the model."""
    emitter = find_writer(profile.bundle.ecosystem, asked_format or profile.bundle.format)
    if isinstance(emitter, Selective):
        emitter.check_signature(facts.signature)


@contextmanager
def name_component(name: str) -> Iterator[None]:
    """An error in the block is about the component `name` (empty: the only one), and says so."""
    try:
        yield
    except BundlerError as error:
        if not name or f"/{name} →" in error.message:
            raise
        named = copy.copy(error)
        named.message = f"{name}: {error.message}"
        raise named from error


_OF_COMPONENT = frozenset(
    (
        *("variants", "optimization", "fusion", "precision", "calibration", "language_model"),
        *("dimensions", "shapes", "accuracy"),
    )
)
"""What a component may have of its own in a profile; the rest belongs to the bundle."""


def _check_common(parts: Sequence[Prepared]) -> None:
    """Raise `UsageError` for components that want the bundle to be of different kinds."""
    if len(parts) == 1:
        return
    common = [part.profile.model_dump(mode="json", exclude=set(_OF_COMPONENT)) for part in parts]
    for part, found in zip(parts, common, strict=True):
        wrong = [key for key, value in found.items() if value != common[0][key]]
        if wrong:
            raise UsageError(
                f"{part.title}: {wrong[0]} must be the same for all components of the bundle",
                hint="set it for the whole bundle, or build the component as a separate bundle",
            )


def _check_together(parts: Sequence[Prepared], together: Sequence[str]) -> None:
    """Raise `UsageError` where no variant is one that all of these components have."""
    variants = {
        part.plan.name: tuple(variant.name for variant in part.plan.variants)
        for part in parts
        if part.plan.name in together
    }
    if variants and not set.intersection(*map(set, variants.values())):
        raise UsageError(
            f"{', '.join(together)} are listed under together, but have no variant in common",
            details=tuple(f"{name} has {', '.join(found)}" for name, found in variants.items()),
            hint="remove together, or give them the same variants",
        )


def _resolve(request: BuildRequest, listener: Listener) -> Resolved:
    """The target, checked; variants that the bundle will not have are reported before anything takes time."""
    resolved = resolve_layers(request.target, target_overrides(request))
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
        replaced = [text for text in request.overrides if text.startswith("python.versions")]
        if replaced and not request.project:
            Reporter(listener, profile.id).warn(f"--python replaces --set {visible(replaced[-1])[:200]}")
        return _fit_pythons(request)
    if not request.project:
        Reporter(listener, profile.id).warn("--python has no effect: this bundle is not a Python package")
    return resolved


def _fit_pythons(request: BuildRequest) -> Resolved:
    try:
        return resolve_layers(request.target, profile_overrides(request))
    except UsageError as error:
        reasons = [text.partition(": ")[2] for text in error.details if text.startswith(_SET_PYTHONS)]
        if len(reasons) < len(error.details) or not reasons:
            raise
        given = "python" if request.project else "--python"
        raise UsageError(
            f"{given} {', '.join(request.python)} does not fit: {reasons[0]}", hint=f"for example {given} 3.12"
        ) from error


_SET_PYTHONS = "--set python.versions"
"""How errors of a profile name the setting that the Pythons of a request become."""


def _check_device(request: BuildRequest, profile: TargetProfile, workspace: Workspace, listener: Listener) -> None:
    """Whether the bundle can be run where it is asked for, before anything takes time."""
    if request.measure and not request.prove:
        raise UsageError("--measure cannot be used with --no-prove", hint="remove one of the two options")
    if request.on is None:
        return
    if not request.prove:
        raise UsageError("--on cannot be used with --no-prove", hint="remove one of the two options")
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
    reformed = f"version {request.version} becomes {identity.version} in the package"
    warnings = (*identity.warnings, *warn_of_no_name(request, name, identity))
    notes = (*warnings, *((reformed,) if identity.version != request.version else ()))
    for text in notes:
        Reporter(listener, f"{name} → {profile.id}").warn(text)
    return replace(request, version=identity.version, package_name=asked)


def describe_left_out(left_out: Sequence[Decision]) -> tuple[str, ...]:
    """A sentence for each variant of the target that the bundle will not have."""
    return tuple(
        f"{decision.subject} of the target is left out of the bundle: {decision.reason}" for decision in left_out
    )


def _own_names(resolved: Resolved, table: str) -> tuple[str, ...]:
    """Names in a table of the profile that are there because the user put them there."""
    names: Mapping[str, Any] = getattr(resolved.profile, table)
    return tuple(name for name in names if resolved.layered.origin((table, name)) == ORIGIN)


def _plan_request(
    request: BuildRequest, data: GivenData, resolved: Resolved, command: tuple[str, ...], component: str
) -> PlanRequest:
    return PlanRequest(
        component=component,
        own_dimensions=_own_names(resolved, "dimensions"),
        own_shapes=_own_names(resolved, "shapes"),
        dimensions=request.dimensions,
        shapes=request.shapes,
        samples=data.samples,
        calibration=data.calibration,
        synthetic_count=request.synthetic_count,
        seed=request.seed,
        golden=request.golden,
        state=data.state,
        renamed=request.rename,
        command=command,
        project=request.project,
    )
