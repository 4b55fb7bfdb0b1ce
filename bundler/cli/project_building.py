"""`bundler build` without a model: what the project file names, with what its lock pins."""

from __future__ import annotations

from pathlib import Path

from bundler.cli.building import BuildArguments, Failure, build_all, check_clashes, check_project_options
from bundler.cli.console import ProgressStyle, open_console
from bundler.model.cache import CacheChoice
from bundler.pipeline.requests import BuildRequest
from bundler.pipeline.results import BuildResult
from bundler.pipeline.workshop import open_workshop, start_early
from bundler.project.decisions import record_decisions, with_decisions
from bundler.project.load import LoadedProject, find_project
from bundler.project.lock import read_lock
from bundler.project.narrowing import narrow_requests
from bundler.project.pinning import pin_project
from bundler.project.requests import project_requests


def build_project(
    arguments: BuildArguments, *, cache: CacheChoice, jobs: int, style: ProgressStyle
) -> list[BuildResult | Failure]:
    """Build all that the nearest project file names; what the command line gives narrows or replaces it.

    Brings `bundler.lock` up to date first, or, with `--locked`, raises `UsageError` when it is not.
    """
    loaded = find_project(Path.cwd(), instead="bundler build MODEL --target TARGET")
    check_project_options(arguments, loaded.path.name)
    requests = project_requests(
        loaded,
        targets=arguments.targets,
        output=arguments.output,
        overrides=arguments.overrides,
        bundle_format=arguments.format,
        prove=arguments.prove,
        on=arguments.on,
        package_name=arguments.package_name,
        trust_target=arguments.trust_target,
        golden=arguments.golden,
    )
    check_clashes(requests)
    pinned_requests = (*_whole_project(loaded), *requests)
    requests = narrow_requests(requests, arguments.only)
    lock = read_lock(loaded.lock_path)
    pinned_here = lock.environments if lock else None
    with (
        open_workshop(cache, jobs, pinned_here, sandbox=arguments.sandbox) as workshop,
        open_console(style) as listener,
    ):
        start_early(workshop, [request.model for request in requests])
        pinned = pin_project(loaded, pinned_requests, workshop.environments, locked=arguments.locked, listener=listener)
        requests = with_decisions(requests, pinned.lock, locked=arguments.locked)
        finished = build_all(requests, workshop, listener, jobs)
    results = [item for item in finished if isinstance(item, BuildResult)]
    record_decisions(loaded.lock_path, pinned.lock, results)
    return finished


def _whole_project(loaded: LoadedProject) -> tuple[BuildRequest, ...]:
    """What the file builds without a command line: the lock stays whole when a part is built. Empty where only the
    command line gives targets.
    """
    project = loaded.project
    if not all(model.targets or project.targets for model in project.models):
        return ()
    return project_requests(loaded, targets=(), output=None, overrides=(), bundle_format=None, prove=True)
