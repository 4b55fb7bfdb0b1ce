"""From a model argument to an inspected ONNX file."""

from __future__ import annotations

import stat
from dataclasses import dataclass, replace
from pathlib import Path

from bundler.execution.executor import Source
from bundler.execution.records import is_safe_path
from bundler.execution.sources import digest_source, source_of
from bundler.model.events import Listener, Reporter
from bundler.model.facts import ModelFacts
from bundler.model.paths import real_path
from bundler.model.plan import MODEL, Step
from bundler.model.renaming import check_names
from bundler.model.results import StepOutcome
from bundler.pipeline.model_file import check_model_path
from bundler.pipeline.packages import find_model, is_package_argument, join_model, parse_package
from bundler.pipeline.requests import BuildRequest, bundle_name
from bundler.pipeline.sources import export_model, is_reference, parse_reference
from bundler.pipeline.workspace import Workspace
from bundler.planning.inspection import INSPECT_ID, inspect_step
from bundler.stages.rename_values.spec import SPEC as RENAME
from bundler.support.reads import announce_look


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedModel:
    """An inspected model. `source` is its ONNX file with its external data, and `outcomes` are those of the steps that
    led here: the export, where there was one, the inspection, and the renaming. `title` names it, and its target, in
    messages. `original` is the model as it was given, where `source` has other names.
    """

    name: str
    title: str
    facts: ModelFacts
    source: Source
    outcomes: tuple[StepOutcome, ...]
    original: Source | None = None


def name_model(request: BuildRequest) -> str:
    """What a bundle of the requested model is called; nothing of the model is read. Raises `UsageError`."""
    text = str(request.model)
    if is_package_argument(text):
        return bundle_name(replace(request, model=Path(parse_package(text).name)))
    return bundle_name(replace(request, model=Path(parse_reference(text).name)) if is_reference(text) else request)


def name_after_file(request: BuildRequest, *, several: bool) -> BuildRequest:
    """With the name of the bundle for its only model; each of `several` models bears the name of its file."""
    return replace(request, name=None) if several else request


def open_model(
    request: BuildRequest, target: str, workspace: Workspace, listener: Listener, title: str = ""
) -> OpenedModel:
    """Export or unpack the model where it is no ONNX file yet, inspect it, and give it the requested names. Raises
    `ModelError`, `UsageError`.

    `title` is made of the model's name and `target` where there is none.
    """
    name = name_model(request)
    title = title or (f"{name} → {target}" if target else name)
    reporter = Reporter(listener, title)
    path, exported = _find_onnx(request.model, workspace, reporter)
    facts, inspection, source = _inspect_file(path, name, workspace, reporter)
    opened = OpenedModel(name=name, title=title, facts=facts, source=source, outcomes=(*exported, inspection))
    return _rename(opened, request, workspace, reporter) if request.rename else opened


def _rename(opened: OpenedModel, request: BuildRequest, workspace: Workspace, reporter: Reporter) -> OpenedModel:
    check_names(opened.facts.signature, request.rename)
    step = Step(
        id=RENAME.name,
        stage=RENAME.name,
        inputs={"model": MODEL},
        options={"names": dict(request.rename)},
        reason=f"set by {request.project or 'the request'}",
    )
    outcome = workspace.executor.execute((step,), {MODEL: opened.source}, reporter)[step.id]
    facts, _, source = _inspect_file(source_of(outcome).path, opened.name, workspace, Reporter())
    given = opened.facts  # the sizes that people read are those of their own files
    facts = replace(facts, file_bytes=given.file_bytes, external_bytes=given.external_bytes)
    outcomes = (*opened.outcomes, outcome)
    return replace(opened, facts=facts, source=source, original=opened.source, outcomes=outcomes)


def _find_onnx(model: Path, workspace: Workspace, reporter: Reporter) -> tuple[Path, tuple[StepOutcome, ...]]:
    if is_package_argument(str(model)):
        return join_model(find_model(parse_package(str(model))), workspace.cache.scratch.new_folder()), ()
    if not is_reference(str(model)):
        return model, ()
    exported = export_model(parse_reference(str(model)), workspace, reporter)
    return exported.source.path, (exported.outcome,)


def _inspect_file(
    path: Path, name: str, workspace: Workspace, reporter: Reporter
) -> tuple[ModelFacts, StepOutcome, Source]:
    """The model's facts, the step that found them, and the model with its external data as a source."""
    check_model_path(path)
    alone = digest_source(path, (), workspace.cache)
    outcome = workspace.executor.execute((inspect_step(name),), {MODEL: alone}, reporter)[INSPECT_ID]
    facts = outcome.read_facts(ModelFacts)
    if outcome.cached and not is_as_checked(path, facts):  # it says what is wrong, or finds other facts
        again = replace(inspect_step(name), volatile=True)
        outcome = workspace.executor.execute((again,), {MODEL: alone}, reporter)[INSPECT_ID]
        facts = outcome.read_facts(ModelFacts)
    external = [path.parent / name for name in facts.external_files]
    model = digest_source(path, external, workspace.cache) if external else alone
    return facts, outcome, model


def is_as_checked(model: Path, facts: ModelFacts) -> bool:
    """Whether the external data are what the check of the model found: real files in its folder, each of its size.

    No more of them was read. What facts from a cache say is not believed: no path leads out, nothing is opened.
    """
    return tuple(_size_of(model.parent, name) for name in facts.external_files) == facts.external_sizes


def _size_of(folder: Path, name: str) -> int | None:
    """The size of a plain file with one name, no part of whose path is a link; None for anything else."""
    path = folder / name
    announce_look(path)
    try:
        status = path.lstat()
        inside = is_safe_path(name) and real_path(path).is_relative_to(real_path(folder))
    except (OSError, ValueError):
        return None
    return status.st_size if inside and stat.S_ISREG(status.st_mode) and status.st_nlink == 1 else None
