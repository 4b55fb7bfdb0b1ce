"""Find stages by name. Built-in stages register through the same entry points as third-party stages."""

from __future__ import annotations

import difflib
from importlib.metadata import EntryPoint

from bundler.model.errors import DefectError, UsageError
from bundler.model.registered import find_registered, registered_names
from bundler.model.stage import StageSpec

GROUP = "bundler.stages"


def find_stage(name: str) -> StageSpec:
    """The specification of the stage `name`. Raises `UsageError` when no stage has that name."""
    spec = _entry_point(name).load()
    if not isinstance(spec, StageSpec) or spec.name != name:
        raise DefectError(f"the entry point of stage {name!r} is not a StageSpec of that name")
    return spec


def run_module(name: str) -> str:
    """The module that holds the stage's `run` function, beside its spec. Only a worker imports it."""
    return _entry_point(name).module.rpartition(".")[0] + ".run"


def _entry_point(name: str) -> EntryPoint:
    found = find_registered(GROUP, name)
    if found is not None:
        return found
    close = difflib.get_close_matches(name, registered_names(GROUP), n=1)
    raise UsageError(
        f"no stage is named {name!r}",
        hint=f"did you mean {close[0]!r}?" if close else "install the package that provides it",
    )
