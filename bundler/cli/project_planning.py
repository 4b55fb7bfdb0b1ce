"""`bundler plan` without a model: what the project file names."""

from __future__ import annotations

from pathlib import Path

from bundler.cli.building import BuildArguments, Failure, check_project_options
from bundler.cli.planning import plan_all
from bundler.model.cache import CacheChoice
from bundler.pipeline.results import PlanResult
from bundler.pipeline.workshop import open_workshop
from bundler.project.decisions import with_decisions
from bundler.project.load import find_project
from bundler.project.lock import read_lock
from bundler.project.narrowing import narrow_requests
from bundler.project.requests import project_requests


def plan_project(arguments: BuildArguments, cache: CacheChoice) -> list[PlanResult | Failure]:
    """Plan all that the nearest project file names, or what `--only` picks of it, with what the lock pins and decided.

    The lock is not brought up to date, for nothing is built. Raises `UsageError`.
    """
    loaded = find_project(Path.cwd(), instead="bundler plan MODEL --target TARGET")
    check_project_options(arguments, loaded.path.name)
    requests = project_requests(
        loaded,
        targets=arguments.targets,
        output=None,
        overrides=arguments.overrides,
        bundle_format=arguments.format,
        prove=True,
        trust_target=arguments.trust_target,
    )
    requests = narrow_requests(requests, arguments.only)
    lock = read_lock(loaded.lock_path)
    with open_workshop(cache, 1, lock.environments if lock else None, sandbox=arguments.sandbox) as workshop:
        return plan_all(with_decisions(requests, lock, locked=False) if lock else requests, workshop)
