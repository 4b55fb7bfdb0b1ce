"""Build requests from a command line that names models."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from bundler.api import BuildRequest, combine_requests, list_target_names
from bundler.cli.options import Given
from bundler.model.component_names import check_component_names
from bundler.model.errors import UsageError
from bundler.pipeline.packages import list_packaged, parse_package
from bundler.pipeline.requests import bundle_name
from bundler.support.reads import announce_look


def make_requests(
    models: Sequence[Path], targets: Sequence[str], given: Given, only: Sequence[str]
) -> tuple[BuildRequest, ...]:
    """One request for each model and target, or, of models with names (`detect=det.onnx`) and those of one model
    package, one for each target; what is given twice counts once. Raises `UsageError` for incompatible options.
    """
    models, targets = tuple(dict.fromkeys(models)), tuple(dict.fromkeys(targets))
    components = find_components(models)
    if only:
        raise UsageError(
            "--only cannot be used with a model: it selects from the project file", hint="remove the model or --only"
        )
    if not targets:
        raise _no_target(models)
    packaged = {} if components or len(models) != 1 else list_packaged(str(models[0]))
    if packaged:
        _check_packaged(packaged, models[0])
        components = {name: Path(argument) for name, argument in packaged.items()}
        given = {**given, "name": given.get("name") or parse_package(str(models[0])).name}
    if components:
        return tuple(_combine(components, target, given) for target in targets)
    if given.get("name") and len(models) > 1:
        raise UsageError(
            "--name applies to one model only",
            hint=f"remove --name, or name each model to build one bundle of all: NAME={models[0]}",
        )
    return tuple(BuildRequest(model=model, target=target, **given) for model in models for target in targets)


def _check_packaged(packaged: Mapping[str, str], package: Path) -> None:
    """Raise `UsageError` where the package calls a model what no component of a bundle can be called."""
    try:
        check_component_names(packaged)
    except UsageError as error:
        named = " ".join(f"NAME={shlex.quote(argument)}" for argument in list(packaged.values())[:_MOST_NAMED])
        more = " …" if len(packaged) > _MOST_NAMED else ""
        raise UsageError(
            f"{package}: {error.message}",
            hint=f"name each model in place of the package: {named}{more} --bundle NAME",
        ) from error


_MOST_NAMED = 4
"""Models of a package that a hint writes out."""

SYNTHETIC = "synthetic"
"""Calibration data that are made, as `--calibration` names them."""

_NAMED = re.compile(r"([^\W\d]\w*)=(.*)", re.DOTALL)


def find_components(models: Sequence[Path]) -> dict[str, Path]:
    """The models by the name before each; empty where none has one. A file whose name has the form is a file.

    Raises `UsageError` where some have names and some have none, and for a name that is given twice.
    """
    found = {model: named for model in models if (named := _NAMED.fullmatch(str(model))) and not _exists(model)}
    if not found:
        return {}
    plain = [model for model in models if model not in found]
    if plain:
        raise UsageError(
            f"{next(iter(found))} has the name of a component, and {plain[0]} has none",
            hint=f"name each model: NAME={plain[0]}; build separate bundles with separate commands",
        )
    empty = next((named[1] for named in found.values() if not named[2]), "")
    if empty:
        raise UsageError(f"{empty}= has no model", hint=f"give its file: {empty}=MODEL")
    components = {named[1]: Path(named[2]) for named in found.values()}
    if len(components) < len(found):
        names = [named[1] for named in found.values()]
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"two models have the name {twice}", hint="give each component a unique name")
    return components


def _exists(path: Path) -> bool:
    announce_look(path)
    return path.exists()


def _combine(components: Mapping[str, Path], target: str, given: Given) -> BuildRequest:
    """The request for one bundle of all `components`."""
    name = given.get("name")
    if name is None and len(components) > 1:
        raise UsageError("a bundle of several models requires a name", hint="add --bundle NAME")
    if given.get("preprocessing") and len(components) > 1:
        raise UsageError(
            "--preprocessing cannot be used with several models",
            hint="put a preprocessing.toml into the samples folder of each model",
        )
    parts = {
        component: BuildRequest(
            model=model, target=target, **_locate_data(component, given, several=len(components) > 1)
        )
        for component, model in components.items()
    }
    return combine_requests(parts, name or bundle_name(next(iter(parts.values()))))


def _locate_data(component: str, given: Given, *, several: bool) -> Given:
    """What is given for all, with the component's own part of a folder of samples."""
    found = {role: given[role] for role in ("samples", "calibration") if given.get(role) not in (None, SYNTHETIC)}
    if not several or not found:
        return given
    return {**given, **{role: _find_data(str(place), role, component) for role, place in found.items()}}


def _find_data(place: str, role: str, component: str) -> str:
    for path in (Path(place) / component, Path(place) / f"{component}.npz"):
        if _exists(path):
            return str(path)
    raise UsageError(
        f"--{role} {place} has no data for component {component}",
        hint=f"put its samples into {Path(place) / component}, or name the data of each component in a project file",
    )


def _no_target(models: Sequence[Path]) -> UsageError:
    """A target's name among the models is a common mistake: the hint names it."""
    names = list_target_names()
    named = [str(model) for model in models if str(model) in names]
    hint = "add --target NAME; `bundler targets list` shows the names"
    if named:
        hint = f"{named[0]} is a target: use --target {named[0]}"
    return UsageError("no target given", hint=hint)
