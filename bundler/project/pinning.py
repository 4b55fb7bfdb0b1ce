"""Which locks a project's builds need, and keeping its lock file up to date with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bundler.emitters.registry import find_writer
from bundler.environments.registry import Environments, LockSource, runtime_packages
from bundler.model.errors import UsageError
from bundler.model.events import Listener, Reporter, ignore
from bundler.pipeline.given import source_environments
from bundler.pipeline.pipeline_packages import list_pipeline_locks
from bundler.pipeline.requests import BuildRequest, list_parts, target_overrides
from bundler.planning.plan import step_environments
from bundler.profiles.resolve import resolve_target
from bundler.project.load import LoadedProject
from bundler.project.lock import LockFile, find_differences, read_lock, resolve_locks, write_lock


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """The lock that builds obey, and what had to change to bring it up to date."""

    lock: LockFile
    changes: tuple[str, ...]


def needed_locks(requests: Sequence[BuildRequest], environments: Environments) -> dict[str, LockSource | None]:
    """The sources, by name, of the locks of all that these builds may download. Raises `ProfileError`,
    and `UsageError` for data that are not there.
    """
    found: dict[str, LockSource | None] = {}
    for request in requests:
        found |= list_pipeline_locks(request.pipeline.requires if request.pipeline else ())
    requests = [part for request in requests for part in list_parts(request).values()]
    profiles = {
        key: resolve_target(*key)
        for key in dict.fromkeys((request.target, target_overrides(request)) for request in requests)
    }
    for request in requests:
        profile = profiles[request.target, target_overrides(request)]
        chosen = request.format or profile.bundle.format
        found |= find_writer(profile.bundle.ecosystem, chosen).locks(profile, chosen)
        for name in (*step_environments(profile), *_source_environments(request)):
            if not environments.is_host(name):
                _, _, version = name.partition("==")
                found[name] = runtime_packages(version) if version else None
    return dict(sorted(found.items()))


def _source_environments(request: BuildRequest) -> tuple[str, ...]:
    """As `source_environments`; the error says which line of the project file asks."""
    try:
        return source_environments(request)
    except UsageError as error:
        raise UsageError(f"{request.where}{error.message}", details=error.details, hint=error.hint) from error


def pin_project(
    loaded: LoadedProject,
    requests: Sequence[BuildRequest],
    environments: Environments,
    *,
    locked: bool = False,
    upgrade: bool = False,
    listener: Listener = ignore,
) -> Pinned:
    """Bring `bundler.lock` up to date with what the builds need.

    `locked` refuses to: raises `UsageError` naming each difference. `upgrade` forgets what was pinned. Decisions that
    were measured stay, whatever else changes.
    """
    before = read_lock(loaded.lock_path)
    current = resolve_locks(needed_locks(requests, environments), environments, Reporter(listener))
    changes = find_differences(before, current)
    if before is not None:
        changes += tuple(
            f"{name}: other versions"
            for name, text in current.environments.items()
            if before.environments.get(name, text) != text
        )
    if changes and locked:
        raise UsageError(
            f"{loaded.lock_path.name} is out of date and may not be changed (--locked, or lock --check)",
            details=changes,
            hint="`bundler lock` updates it; `bundler lock --upgrade` resolves all versions again",
        )
    if before is None:
        changes = ("written for the first time",)
    after = replace(current, decisions=before.decisions if before else {})
    if changes or upgrade:
        write_lock(loaded.lock_path, after)
    return Pinned(lock=after, changes=changes)
