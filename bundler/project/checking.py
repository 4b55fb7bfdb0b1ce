"""Checks a project file against its schema. All mistakes are reported at once, each with its line and key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from bundler.model.component_names import check_component_names
from bundler.model.errors import UsageError
from bundler.profiles.problems import Problem, explain_errors, show_key, suggest
from bundler.profiles.resolve import freeze_arrays, locate_target, target_ids
from bundler.profiles.schema import Variant
from bundler.profiles.sections import profile_model
from bundler.project.globs import find_idle_globs
from bundler.project.positions import Key, find_line
from bundler.project.schema import Project

VARIANTS = "variants"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A project file as it was read: its text, and of its data the project's `table` (none: all of it)."""

    path: Path
    text: str
    data: Mapping[str, Any]
    table: tuple[str, ...] = ()

    def find_line(self, key: Key) -> int | None:
        """The line in which `key`, or the table that misses it, begins."""
        return find_line(self.text, (*self.table, *key))


def check_project(source: Source) -> Project:
    """The checked project. Raises `UsageError` with one line of `details` for each thing that is wrong."""
    problems = list(_find_override_problems(source.data.get("overrides")))
    try:
        project = Project.model_validate(freeze_arrays(source.data), strict=True)
    except ValidationError as error:
        raise _invalid(source, [*explain_errors(error, source.data, Project), *problems]) from error
    problems += _find_wrong_components(project)
    problems += _find_unknown_targets(project)
    problems += _find_idle_overrides(source, project)
    if problems:
        raise _invalid(source, problems)
    return project


def _find_wrong_components(project: Project) -> Iterator[Problem]:
    if not project.entries:
        yield Problem(key=(), text="names no model: add [[models]], or [[bundles]] for several models in one bundle")
    for number, bundle in enumerate(project.bundles):
        if bundle.pipeline is not None and len(bundle.models) == 1:
            yield Problem(key=("bundles", number, "pipeline"), text="requires a bundle of several models")
        for name in bundle.models:
            try:
                check_component_names([name])
            except UsageError as error:
                yield Problem(key=("bundles", number, "models", name), text=f"{error.message}; {error.hint}")


def _find_unknown_targets(project: Project) -> Iterator[Problem]:
    named: list[tuple[Key, tuple[str, ...]]] = [(("targets",), project.targets)]
    named += [((*place, "targets"), entry.targets) for place, entry in project.entries]
    for key, targets in named:
        for position, target in enumerate(targets):
            try:
                locate_target(target)
            except UsageError as error:
                yield Problem(key=(*key, position), text=error.message)


def _find_idle_overrides(source: Source, project: Project) -> Iterator[Problem]:
    named = (*project.targets, *(target for _, entry in project.entries for target in entry.targets))
    places = (str(source.path.parent / target) if target.endswith(".toml") else target for target in named)
    for glob in find_idle_globs(project.overrides, places):
        text = "matches no target of bundler or of this file" + suggest(glob, target_ids())
        yield Problem(key=("overrides", glob), text=text)


def _find_override_problems(overrides: Any) -> Iterator[Problem]:
    """Unknown keys and values of the wrong type in parts of profiles. Whether they fit is checked later."""
    for pattern, part in overrides.items() if isinstance(overrides, Mapping) else ():
        if isinstance(part, Mapping):
            yield from _check_part(part, ("overrides", pattern))


def _check_part(part: Mapping[str, Any], above: Key) -> Iterator[Problem]:
    """A table of variants names those that it changes: `variants.cpu.session`; an array would replace them all."""
    variants = part.get(VARIANTS)
    named = variants if isinstance(variants, Mapping) else {}
    yield from _check_section({key: value for key, value in part.items() if not (key == VARIANTS and named)}, above)
    for name, variant in named.items():
        yield from _check_section(variant, (*above, VARIANTS, name), Variant)


def _check_section(part: Any, above: Key, section: type[BaseModel] | None = None) -> Iterator[Problem]:
    section = section or profile_model()
    try:
        section.model_validate(freeze_arrays(part), strict=True)
    except ValidationError as error:
        for problem in explain_errors(error, part if isinstance(part, Mapping) else {}, section):
            if not problem.text.startswith("is missing"):  # a part need not be whole
                yield Problem(key=(*above, *problem.key), text=problem.text)


def _invalid(source: Source, problems: list[Problem]) -> UsageError:
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    placed = [(source.find_line(problem.key), problem) for problem in problems]
    placed.sort(key=lambda item: item[0] or 0)
    return UsageError(
        f"{source.path} is not a valid project file: {count}",
        details=tuple(_show(source.path, line, problem) for line, problem in placed),
        hint="docs/project.md describes every key; `bundler init --schema` prints the schema",
    )


def _show(path: Path, line: int | None, problem: Problem) -> str:
    """`bundler.toml:12: models[0].nmae: unknown key`."""
    place = path.name if line is None else f"{path.name}:{line}"
    key = f"{show_key(problem.key)}: " if problem.key else ""
    return f"{place}: {key}{problem.text}"
