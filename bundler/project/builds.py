"""Builds and plans what a project file names, or a part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bundler.model.events import Listener
from bundler.pipeline.early import start_early
from bundler.pipeline.requests import BuildRequest, bundle_name, check_clashes, decision_key
from bundler.pipeline.results import BuildResult, Failure, PlanResult
from bundler.pipeline.settings import Settings
from bundler.pipeline.workspace import open_workspace
from bundler.profiles.resolve import resolve_target
from bundler.project.load import LoadedProject, find_project
from bundler.project.lock import LockFile, read_lock, write_lock
from bundler.project.narrowing import narrow_requests
from bundler.project.pinning import pin_project
from bundler.project.requests import project_requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """A project file, all `requests` that it makes with what the command line gives, and of them those to work on."""

    loaded: LoadedProject
    requests: tuple[BuildRequest, ...]
    picked: tuple[BuildRequest, ...]
    lock: LockFile | None


def pick_requests(
    folder: Path, *, targets: Sequence[str], only: Sequence[str], given: Mapping[str, Any], instead: str
) -> Picked:
    """What `only` picks of the nearest project file above `folder`; `targets` and `given` come over what it says.

    `instead` is the command that does the same without a file. Raises `UsageError`.
    """
    loaded = find_project(folder, instead=instead)
    requests = project_requests(loaded, targets=targets, given=given)
    picked = narrow_requests(requests, only)
    return Picked(loaded=loaded, requests=requests, picked=picked, lock=read_lock(loaded.lock_path))


def build_picked(found: Picked, settings: Settings, listener: Listener, *, locked: bool) -> list[BuildResult | Failure]:
    """Build them. Brings `bundler.lock` up to date first, or, with `locked`, raises `UsageError` when it is not."""
    check_clashes(found.requests)
    loaded, pins = found.loaded, found.lock.environments if found.lock else None
    with open_workspace(settings.cache_choice, settings.jobs, pins, sandbox=settings.sandbox) as workspace:
        start_early(workspace, found.picked)
        from bundler.pipeline.batch import build_all  # noqa: PLC0415 - a worker starts while we load the rest

        wanted = (*_whole_project(loaded), *found.requests)
        pinned = pin_project(loaded, wanted, workspace.environments, locked=locked, listener=listener)
        requests = _with_decisions(found.picked, pinned.lock, locked=locked)
        finished = build_all(requests, workspace, listener, settings.jobs)
    _record_decisions(loaded.lock_path, pinned.lock, [item for item in finished if isinstance(item, BuildResult)])
    return finished


def plan_picked(found: Picked, settings: Settings, listener: Listener) -> list[PlanResult | Failure]:
    """Plan them with what the lock pins and decided; it is not brought up to date, for nothing is built."""
    from bundler.pipeline.batch import plan_all  # noqa: PLC0415 - as above

    check_clashes(found.requests)
    lock = found.lock
    requests = _with_decisions(found.picked, lock, locked=False) if lock else found.picked
    with open_workspace(
        settings.cache_choice, settings.jobs, lock.environments if lock else None, sandbox=settings.sandbox
    ) as workspace:
        return plan_all(requests, workspace, listener)


def find_bundles(found: Picked) -> tuple[Path, ...]:
    """The folders of their bundles, built or not. Raises `ProfileError`."""
    return tuple(
        request.output / decision_key(bundle_name(request), resolve_target(request.target).id)
        for request in found.picked
    )


def _whole_project(loaded: LoadedProject) -> tuple[BuildRequest, ...]:
    """What the file builds without a command line: the lock stays whole when a part is built. Empty where only the
    command line gives targets.
    """
    project = loaded.project
    if not all(entry.targets or project.targets for _, entry in project.entries):
        return ()
    return project_requests(loaded)


def _with_decisions(requests: Sequence[BuildRequest], lock: LockFile, *, locked: bool) -> tuple[BuildRequest, ...]:
    """The requests with what the lock holds; with `locked` they may decide nothing new."""
    return tuple(replace(request, decisions=lock.decisions, locked=locked) for request in requests)


def _record_decisions(path: Path, lock: LockFile, results: Sequence[BuildResult]) -> bool:
    """Write what the builds decided into the lock at `path`; whether anything was new."""
    found = {decision_key(result.name, result.target): result.decisions for result in results if result.decisions}
    merged = {**lock.decisions, **found}
    if merged == dict(lock.decisions):
        return False
    write_lock(path, replace(lock, decisions=merged))
    return True
