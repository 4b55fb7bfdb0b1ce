"""From a project file to build requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from bundler.model.confinement import refuse_path
from bundler.model.errors import UsageError
from bundler.model.options import find_options
from bundler.model.state import StateLink, make_link
from bundler.pipeline.data import SYNTHETIC
from bundler.pipeline.requests import (
    BuildRequest,
    PipelineMetric,
    PipelineRequest,
    combine_requests,
    locate_function,
)
from bundler.pipeline.sources import PREFIX
from bundler.project.fitting import check_fit
from bundler.project.load import LoadedProject, component_overrides, overrides_for
from bundler.project.positions import Key
from bundler.project.schema import ComponentModel, Pipeline, ProjectBundle, ProjectModel, State
from bundler.project.schema import PipelineMetric as GivenMetric
from bundler.support.reads import announce_look

_FIELDS = {field.name for field in fields(BuildRequest)}
_OF_THE_WHOLE = frozenset(("together", "pipeline"))
"""What a bundle says of all its components at once."""
_LOCATED = frozenset(("samples", "calibration", "preprocessing", "state"))
"""Paths, which are relative to the file."""


def project_requests(
    loaded: LoadedProject, *, targets: Sequence[str] = (), given: Mapping[str, Any] = MappingProxyType({})
) -> tuple[BuildRequest, ...]:
    """One request for each model and each of its targets. What the command line gives comes over the file: `targets`
    in place of the file's (a profile's path is relative to the current folder, as all that is given there), and fields
    of a request, by name, in `given`.

    Raises `UsageError` when a model has no target, and for a field that says something of one model.
    """
    _refuse_options_of_one_model(given, loaded.path.name)
    named = [
        (place, entry, target)
        for place, entry in loaded.project.entries
        for target in targets or _targets_of(loaded, entry)
    ]
    check_fit(loaded, (target for _, _, target in named))
    return tuple(_request_of(loaded, place, entry, target, given) for place, entry, target in named)


def _request_of(
    loaded: LoadedProject, place: Key, entry: ProjectModel | ProjectBundle, target: str, given: Mapping[str, Any]
) -> BuildRequest:
    """What the file, and over it the command line, says of one bundle."""
    if isinstance(entry, ProjectModel):
        return _over(_read_model(loaded, entry, place, target), given)
    common = {name: getattr(entry, name) for name in _same_fields(entry) if name not in _OF_THE_WHOLE}
    parts = {
        name: _over(replace(_read_model(loaded, model, (*place, "models", name), target), **common), given)
        for name, model in entry.models.items()
    }
    try:
        request = combine_requests(parts, entry.name, entry.together)
    except UsageError as error:
        raise UsageError(f"{loaded.place(place)}: {error.message}", details=error.details, hint=error.hint) from error
    return replace(request, origin=loaded.place(place), pipeline=_read_pipeline(loaded, place, entry.pipeline))


def _read_pipeline(loaded: LoadedProject, place: Key, given: Pipeline | None) -> PipelineRequest | None:
    if given is None:
        return None
    file, entry = _locate_function(loaded, (*place, "pipeline", "python"), given.python)
    return PipelineRequest(
        file=file,
        entry=entry,
        samples=loaded.root / given.samples,
        files=tuple(loaded.root / name for name in given.files),
        requires=given.requires,
        least=given.least if given.least is not None else float(given.metric is None),
        absolute=given.absolute,
        relative=given.relative,
        metric=_read_metric(loaded, (*place, "pipeline", "metric", "python"), given.metric),
    )


def _read_metric(loaded: LoadedProject, place: Key, given: GivenMetric | None) -> PipelineMetric | None:
    if given is None:
        return None
    file, entry = _locate_function(loaded, place, given.python)
    return PipelineMetric(file=file, entry=entry, least=given.least, drop=given.drop)


def _locate_function(loaded: LoadedProject, place: Key, text: str) -> tuple[Path, str]:
    try:
        return locate_function(text, loaded.root)
    except UsageError as error:
        raise UsageError(f"{loaded.place(place)}: {error.message}", hint=error.hint) from error


def _read_model(loaded: LoadedProject, model: ProjectModel | ComponentModel, place: Key, target: str) -> BuildRequest:
    own = component_overrides(model, loaded.root) if isinstance(model, ComponentModel) else ()
    return BuildRequest(
        model=_locate_model(loaded, model.path),
        target=target,
        output=loaded.root / loaded.project.output,
        overrides=(*overrides_for(loaded.project, target, loaded.root), *own),
        project=loaded.path.name,
        origin=loaded.place(place),
        samples=_locate_data(loaded, model.samples),
        calibration=_locate_data(loaded, model.calibration),
        preprocessing=loaded.root / model.preprocessing if model.preprocessing else None,
        state=tuple(_read_link(loaded, (*place, "state", taken), link) for taken, link in model.state.items()),
        **{name: getattr(model, name) for name in _same_fields(model) if name not in _LOCATED},
    )


def _read_link(loaded: LoadedProject, place: Key, given: str | State) -> StateLink:
    """A link whose file is below the folder of the project file: its bytes become part of the bundle."""
    state = State(output=given) if isinstance(given, str) else given
    try:
        link = make_link(str(place[-1]), state.output, state.initial, state.grows)
    except UsageError as error:
        raise UsageError(f"{loaded.place(place)}: {error.message}", hint=error.hint) from error
    refusal = refuse_path(link.file) if link.file else None
    if refusal:
        raise UsageError(
            f"{loaded.place(place)}: the initial value {link.file[:80]!r} of {link.input[:80]!r}: {refusal}",
            hint="use a .npy file in the folder of the project file, or below it",
        )
    return replace(link, file=str(loaded.root / link.file)) if link.file else link


def _same_fields(section: BaseModel) -> Iterator[str]:
    """What a section of the file and a request say by the same name."""
    return (name for name in type(section).model_fields if name in _FIELDS)


def _over(request: BuildRequest, given: Mapping[str, Any]) -> BuildRequest:
    overrides = (*request.overrides, *given.get("overrides", ()))
    return replace(request, **{**given, "overrides": overrides})


def _refuse_options_of_one_model(given: Mapping[str, Any], file: str) -> None:
    """They would change nothing, for the file says of each model what it has."""
    flags = [
        option.flag for name, option in find_options(BuildRequest).items() if option.of_one_model and name in given
    ]
    if flags:
        raise UsageError(
            f"{flags[0]} requires a model on the command line: it applies to one model",
            hint=f"write it into {file} (docs/project.md has its keys), or add the model and its target to the command",
        )


def _locate_model(loaded: LoadedProject, path: str) -> Path:
    """A folder behind `hf:` is relative to the file, too; a name of a model is none."""
    place = path.removeprefix(PREFIX)
    announce_look(loaded.root / place)
    if place == path or not (loaded.root / place).is_dir():
        return Path(path) if place != path else loaded.root / path
    return Path(f"{PREFIX}{loaded.root / place}")


def _locate_data(loaded: LoadedProject, data: str | None) -> str | None:
    """Paths are relative to the file; a function of an installed module and the word `synthetic` are none."""
    if data is None or data == SYNTHETIC or (":" in data and not data.partition(":")[0].endswith(".py")):
        return data
    return str(loaded.root / data)


def _targets_of(loaded: LoadedProject, entry: ProjectModel | ProjectBundle) -> tuple[str, ...]:
    targets = entry.targets or loaded.project.targets
    if not targets:
        raise UsageError(
            f"{loaded.path} names no target for {entry.path if isinstance(entry, ProjectModel) else entry.name}",
            hint='add targets = ["linux-x64"], or use --target',
        )
    return tuple(_locate_target(loaded, target) for target in targets)


def _locate_target(loaded: LoadedProject, target: str) -> str:
    """A profile's path in the file is relative to the file, wherever the command is run."""
    return str(loaded.root / target) if target.endswith(".toml") else target
