"""From a request to a plan: the profile resolved, the model inspected, its files hashed."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bundler.emitters.registry import check_format, find_writer
from bundler.execution.executor import Source
from bundler.execution.sources import digest_source
from bundler.model.attempts import Frontier
from bundler.model.codec import decode
from bundler.model.errors import ModelError
from bundler.model.events import Listener, Message
from bundler.model.facts import ModelFacts
from bundler.model.paths import check_path_text
from bundler.model.plan import CALIBRATION, METRIC, MODEL, SAMPLES, BuildPlan, Decision
from bundler.model.results import StepOutcome
from bundler.model.stage import Note
from bundler.pipeline.checked import is_as_checked
from bundler.pipeline.commands import repeat_command
from bundler.pipeline.data import DataArgument, check_used, read_argument
from bundler.pipeline.package_names import identify_package
from bundler.pipeline.packages import find_model, is_package_argument, join_model, parse_package
from bundler.pipeline.requests import BuildRequest, bundle_name
from bundler.pipeline.sources import export_model, is_reference, parse_reference
from bundler.pipeline.workshop import Workshop
from bundler.planning.data import DataRequest
from bundler.planning.fit import apply_recipe, leave_out
from bundler.planning.plan import INSPECT_ID, PlanRequest, inspect_step, make_plan
from bundler.profiles.commands import check_commands
from bundler.profiles.overrides import ORIGIN
from bundler.profiles.resolve import Resolved, resolve_layers
from bundler.profiles.schema import TargetProfile
from bundler.stages.export_huggingface.spec import ENVIRONMENT as EXPORTER


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request with all that planning found; its `model` is an ONNX file by now. `title` names the build in messages.
    `earlier` are the outcomes of the steps before the plan: the export, where there was one, and the inspection.

    `frontiers` are what was tried to choose precisions, and `decisions` the record of it by variant, for a lock.
    """

    request: BuildRequest
    title: str
    profile: TargetProfile
    facts: ModelFacts
    earlier: tuple[StepOutcome, ...]
    sources: Mapping[str, Source]
    plan: BuildPlan
    plan_request: PlanRequest
    frontiers: tuple[Frontier, ...] = ()
    decisions: Mapping[str, Any] = field(default_factory=dict)


def prepare(request: BuildRequest, workshop: Workshop, listener: Listener) -> Prepared:
    """Resolve, inspect and plan. Raises `ProfileError`, `ModelError` or `UsageError`."""
    resolved = resolve_layers(request.target, request.overrides)
    if not request.trust_target:
        check_commands(resolved)
    profile, left_out = leave_out(resolved.profile)
    chosen = request.format or profile.bundle.format
    check_format(profile.id, profile.bundle.ecosystem, chosen, project=request.project)
    for text in tell_left_out(left_out):  # before anything takes time
        listener(Message(build=profile.id, note=Note(text=text, level="warning")))
    command = repeat_command(request, sandbox=workshop.sandbox is not None)
    request, exported = _as_onnx(request, profile.id, workshop, listener)
    name = bundle_name(request)
    title = f"{name} → {profile.id}"
    request = _name_package(request, name, profile, listener)
    facts, inspection, model = inspect_source(request.model, name, workshop, listener, title)
    data = _read_data(request, profile, workshop)
    plan_request = replace(_plan_request(request, data, left_out, resolved), command=command, project=request.project)
    profile = apply_recipe(profile, facts, calibrated=data.calibration is not None)
    return Prepared(
        request=request,
        title=title,
        profile=profile,
        facts=facts,
        earlier=(*exported, inspection),
        sources={MODEL: model, **data.sources},
        plan=plan_bundle(facts, profile, plan_request),
        plan_request=plan_request,
    )


def _name_package(request: BuildRequest, name: str, profile: TargetProfile, listener: Listener) -> BuildRequest:
    """The request with the package's name and version as its ecosystem writes them. Raises `UsageError`: before
    anything is built that no tool could install.
    """
    asked, identity = identify_package(request, name, profile)
    reformed = f"version {request.version} is written {identity.version} in the package"
    notes = (*identity.warnings, *((reformed,) if identity.version != request.version else ()))
    for text in notes:
        listener(Message(build=f"{name} → {profile.id}", note=Note(text=text, level="warning")))
    return replace(request, version=identity.version, package_name=asked)


def tell_left_out(left_out: Sequence[Decision]) -> tuple[str, ...]:
    """A sentence for each variant of the target that the bundle will not have."""
    return tuple(
        f"the bundle will not have {decision.subject}, which the target has: {decision.reason}" for decision in left_out
    )


def plan_bundle(facts: ModelFacts, profile: TargetProfile, request: PlanRequest) -> BuildPlan:
    """The plan, with the emitter that writes its format."""
    plan = make_plan(facts, profile, request)
    return replace(plan, emitter=find_writer(plan.emitter, plan.format).name)


def find_facts(request: BuildRequest, workshop: Workshop, listener: Listener) -> ModelFacts:
    """What the inspection says of a request's model, exported where it is no ONNX file yet. Raises `ModelError`."""
    request, _ = _as_onnx(request, request.target, workshop, listener)
    name = bundle_name(request)
    return inspect_source(request.model, name, workshop, listener, f"{name} → {request.target}")[0]


def _as_onnx(
    request: BuildRequest, target: str, workshop: Workshop, listener: Listener
) -> tuple[BuildRequest, tuple[StepOutcome, ...]]:
    """The request with an ONNX file for its model, exported where it was none yet."""
    if is_package_argument(str(request.model)):
        return _unpack(request, workshop), ()
    if not is_reference(str(request.model)):
        check_model_path(request.model)
        return request, ()
    reference = parse_reference(str(request.model))
    named = replace(request, model=Path(reference.name), name=request.name)
    name = bundle_name(named)
    exported = export_model(reference, workshop, listener, f"{name} → {target}")
    return replace(request, model=exported.source.path, name=name), (exported.outcome,)


def _unpack(request: BuildRequest, workshop: Workshop) -> BuildRequest:
    """The request with the plain model of a model package. Raises `ModelError`, `UsageError`."""
    reference = parse_package(str(request.model))
    folder = workshop.cache.scratch.new_folder()
    named = replace(request, model=Path(reference.name), name=request.name or None)
    return replace(request, model=join_model(find_model(reference), folder), name=bundle_name(named))


def inspect_source(
    path: Path, name: str, workshop: Workshop, listener: Listener, title: str
) -> tuple[ModelFacts, StepOutcome, Source]:
    """The model's facts, the step that found them, and the model with its external data as a source."""
    check_model_path(path)
    alone = digest_source(path, (), workshop.cache)
    outcome = workshop.executor.execute((inspect_step(name),), {MODEL: alone}, listener, title)[INSPECT_ID]
    facts = decode(ModelFacts, outcome.facts)
    if outcome.cached and not is_as_checked(path, facts):  # it says what is wrong, or finds other facts
        again = replace(inspect_step(name), volatile=True)
        outcome = workshop.executor.execute((again,), {MODEL: alone}, listener, title)[INSPECT_ID]
        facts = decode(ModelFacts, outcome.facts)
    external = [path.parent / name for name in facts.external_files]
    model = digest_source(path, external, workshop.cache) if external else alone
    return facts, outcome, model


def check_model_path(path: Path) -> None:
    """Raise `ModelError` when there is no file at `path`, and `UsageError` for a path that tools do not take."""
    check_path_text(path, "the model")
    if path.is_dir():
        raise _folder_error(path)
    if not path.is_file():
        raise ModelError(f"there is no file {path}", hint=_near(path) or "give the path of an ONNX model")
    how = _EXPORTS.get(path.suffix.lower())
    if how is not None and not _begins_as_onnx(path):
        raise ModelError(f"{path} is no ONNX model, by its name", hint=f"export it to ONNX first: {how}")


def _near(path: Path) -> str:
    """The model beside it whose name is nearly the same; empty for none."""
    try:
        names = [entry.name for entry in path.parent.glob("*.onnx")]
    except (OSError, ValueError):
        return ""
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f"did you mean {path.with_name(close[0])}?" if close else ""


_PYTORCH = "torch.onnx.export(model, inputs, 'model.onnx', dynamo=True) in Python"
_EXPORTS: Mapping[str, str] = {
    ".pt": _PYTORCH,
    ".pth": _PYTORCH,
    ".safetensors": "`bundler build hf:./FOLDER` takes the folder of a Transformers model; else export it from PyTorch",
    ".h5": "`python -m tf2onnx.convert --keras FILE --output model.onnx`",
    ".keras": "`python -m tf2onnx.convert --keras FILE --output model.onnx`",
    ".pb": "`python -m tf2onnx.convert --saved-model FOLDER --output model.onnx`",
    ".gguf": "`bundler build hf:./FOLDER` takes the Transformers model that it was made from",
    ".tflite": "`python -m tf2onnx.convert --tflite FILE --output model.onnx`",
}
"""How files of other kinds become ONNX models, by the end of their name."""

MOST_NAMED = 3
"""Files of a folder that an error names."""


def _begins_as_onnx(path: Path) -> bool:
    """Whether its first field is the version of ONNX's format, whatever the file is called."""
    with path.open("rb") as file:
        return file.read(1) == b"\x08"


def _folder_error(path: Path) -> ModelError:
    models = sorted(entry.name for entry in path.glob("*.onnx"))
    if not models:
        return ModelError(
            f"{path} is a folder with no .onnx file in it", hint="give the path of an ONNX model, or hf:FOLDER"
        )
    names = " or ".join(str(path / name) for name in models[:MOST_NAMED])
    return ModelError(f"{path} is a folder, not an ONNX file", hint=f"name the model in it: {names}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Data:
    """What the user gave beside the model: files as sources, and what planning needs to know of them."""

    sources: Mapping[str, Source]
    samples: DataRequest | None
    calibration: DataRequest | None


def source_environments(request: BuildRequest) -> tuple[str, ...]:
    """The environments that what `request` names must go through before any plan is made of it."""
    found = {argument.environment for argument in _read_arguments(request).values()}
    if is_reference(str(request.model)):
        found.add(EXPORTER)
    return tuple(sorted(found))


def _read_arguments(request: BuildRequest) -> dict[str, DataArgument]:
    given = {SAMPLES: request.samples, CALIBRATION: request.calibration}
    arguments = {
        role: read_argument(str(text), request.preprocessing, f"--{role}")
        for role, text in given.items()
        if text is not None
    }
    check_used(request.preprocessing, tuple(arguments.values()))
    return arguments


def _read_data(request: BuildRequest, profile: TargetProfile, workshop: Workshop) -> _Data:
    """Raises `UsageError` for data that are not there or cannot be taken."""
    arguments = _read_arguments(request)
    sources = {
        name: source
        for role, argument in arguments.items()
        for name, source in argument.sources(role, workshop.cache).items()
    }
    metric = profile.accuracy.metric
    if metric is not None and metric.python is not None:
        sources[METRIC] = digest_source(Path(metric.python.rpartition(":")[0]), (), workshop.cache)
    requests = {role: _data_request(role, argument) for role, argument in arguments.items()}
    samples = requests.get(SAMPLES)
    return _Data(
        sources=sources,
        samples=None if samples is not None and samples.synthetic else samples,
        calibration=requests.get(CALIBRATION),
    )


def _data_request(role: str, argument: DataArgument) -> DataRequest:
    return DataRequest(
        inputs=argument.inputs(role),
        options=argument.options,
        plain=role if argument.is_plain else "",
        synthetic=argument.kind == "synthetic",
        volatile=argument.volatile,
        environment=argument.environment,
    )


def _own_names(resolved: Resolved, table: str) -> tuple[str, ...]:
    """Names in a table of the profile that are there because the user put them there."""
    names: Mapping[str, Any] = getattr(resolved.profile, table)
    return tuple(name for name in names if resolved.layered.origin((table, name)) == ORIGIN)


def _plan_request(
    request: BuildRequest, data: _Data, left_out: tuple[Decision, ...], resolved: Resolved
) -> PlanRequest:
    return PlanRequest(
        left_out=left_out,
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
    )
