"""Finds stages by name. Built-in stages register through the same entry points as third parties' stages."""

from __future__ import annotations

import difflib
import functools
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points

from bundler.model.errors import DefectError, UsageError
from bundler.model.stage import StageSpec

GROUP = "bundler.stages"


def find_stage(name: str) -> StageSpec:
    """What is known of the stage `name`. Raises `UsageError` when nobody registered it."""
    spec = _entry_point(name).load()
    if not isinstance(spec, StageSpec) or spec.name != name:
        raise DefectError(f"the entry point of stage {name!r} does not lead to a StageSpec of that name")
    return spec


def run_module(name: str) -> str:
    """The module with the stage's `run` function, beside that of its spec. It is imported in a worker only."""
    return _entry_point(name).module.rpartition(".")[0] + ".run"


def stage_names() -> tuple[str, ...]:
    """All registered stages, in alphabetical order."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


@functools.cache
def _entry_point(name: str) -> EntryPoint:
    own = _own_entry_points()
    if name in own:
        return own[name]
    others = {point.name: point for point in entry_points(group=GROUP)}
    if name in others:
        return others[name]
    close = difflib.get_close_matches(name, [*own, *others], n=1)
    raise UsageError(
        f"no stage is named {name!r}",
        hint=f"did you mean {close[0]!r}?" if close else "install the package that provides it",
    )


@functools.cache
def _own_entry_points() -> dict[str, EntryPoint]:
    """Ours alone: reading the metadata of every distribution would cost a no-op rebuild tens of milliseconds."""
    try:
        points = distribution("bundler").entry_points
    except PackageNotFoundError:
        return {}
    return {point.name: point for point in points if point.group == GROUP}
