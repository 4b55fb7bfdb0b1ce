"""From a project file to build requests."""

from __future__ import annotations

from pathlib import Path

from bundler.model.errors import UsageError
from bundler.model.golden_inputs import GoldenKind
from bundler.pipeline.data import SYNTHETIC
from bundler.pipeline.requests import BuildRequest
from bundler.pipeline.sources import PREFIX
from bundler.project.fitting import check_fit
from bundler.project.load import LoadedProject, overrides_for
from bundler.project.schema import ProjectModel


def project_requests(
    loaded: LoadedProject,
    *,
    targets: tuple[str, ...],
    output: Path | None,
    overrides: tuple[str, ...],
    bundle_format: str | None,
    prove: bool,
    on: str | None = None,
    package_name: str | None = None,
    trust_target: bool = False,
    golden: GoldenKind | None = None,
) -> tuple[BuildRequest, ...]:
    """One request for each model and each of its targets. What the command line gives comes over the file.

    Raises `UsageError` when a model has no target.
    """
    named = [target for model in loaded.project.models for target in targets or _targets_of(loaded, model)]
    check_fit(loaded, {target: _locate_target(loaded, target) for target in named})
    return tuple(
        BuildRequest(
            model=_locate_model(loaded, model.path),
            target=_locate_target(loaded, target),
            output=output or loaded.root / loaded.project.output,
            name=model.name,
            version=model.version,
            package_name=package_name or model.package_name,
            samples=_locate_data(loaded, model.samples),
            calibration=_locate_data(loaded, model.calibration),
            preprocessing=loaded.root / model.preprocessing if model.preprocessing else None,
            dimensions=model.dimensions,
            shapes=model.shapes,
            overrides=(*overrides_for(loaded.project, target, loaded.root), *overrides),
            format=bundle_format or model.format,
            prove=prove,
            on=on,
            trust_target=trust_target,
            golden=golden or model.golden,
            project=loaded.path.name,
        )
        for model in loaded.project.models
        for target in targets or _targets_of(loaded, model)
    )


def _locate_model(loaded: LoadedProject, path: str) -> Path:
    """A folder behind `hf:` is relative to the file, too; a name of a model is none."""
    place = path.removeprefix(PREFIX)
    if place == path or not (loaded.root / place).is_dir():
        return Path(path) if place != path else loaded.root / path
    return Path(f"{PREFIX}{loaded.root / place}")


def _locate_data(loaded: LoadedProject, data: str | None) -> str | None:
    """Paths are relative to the file; a function of an installed module and the word `synthetic` are none."""
    if data is None or data == SYNTHETIC or (":" in data and not data.partition(":")[0].endswith(".py")):
        return data
    return str(loaded.root / data)


def _targets_of(loaded: LoadedProject, model: ProjectModel) -> tuple[str, ...]:
    targets = model.targets or loaded.project.targets
    if not targets:
        raise UsageError(
            f"{loaded.path} names no target for {model.path}", hint='add targets = ["linux-x64"], or give --target'
        )
    return targets


def _locate_target(loaded: LoadedProject, target: str) -> str:
    """A profile's path in the file is relative to the file, wherever the command is run."""
    return str(loaded.root / target) if target.endswith(".toml") else target
