"""`bundler verify` without a bundle: those that the project file builds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bundler.pipeline.requests import bundle_name, decision_key
from bundler.profiles.resolve import resolve_target
from bundler.project.load import find_project
from bundler.project.narrowing import narrow_requests
from bundler.project.requests import project_requests


def find_bundles(only: Sequence[str]) -> tuple[Path, ...]:
    """Where the bundles of the nearest project file stand, built or not; of them those that `only` picks.

    Raises `UsageError`, `ProfileError`.
    """
    loaded = find_project(Path.cwd(), instead="bundler verify BUNDLE")
    requests = project_requests(loaded, targets=(), output=None, overrides=(), bundle_format=None, prove=True)
    return tuple(
        request.output / decision_key(bundle_name(request), resolve_target(request.target).id)
        for request in narrow_requests(requests, only)
    )
