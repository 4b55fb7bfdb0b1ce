"""`--only`: of what a project builds, the bundles that are meant."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from bundler.model.errors import UsageError
from bundler.pipeline.requests import BuildRequest, bundle_name, decision_key

MAX_LISTED_BUNDLES = 12
"""Bundles that an error lists."""


def narrow_requests(requests: Sequence[BuildRequest], patterns: Iterable[str]) -> tuple[BuildRequest, ...]:
    """The requests whose bundle (`detector-linux-x64`), model (`detector`) or target (`linux-x64`) one of `patterns`
    names or, as a glob, matches; all without a pattern. Raises `UsageError` for a pattern that picks nothing.
    """
    names = [_names_of(request) for request in requests]
    patterns = tuple(patterns)
    for pattern in patterns:
        if not any(_matches(known, pattern) for known in names):
            raise _picks_nothing(pattern, names)
    return tuple(
        request
        for request, known in zip(requests, names, strict=True)
        if not patterns or any(_matches(known, pattern) for pattern in patterns)
    )


def _names_of(request: BuildRequest) -> tuple[str, str, str]:
    """The bundle, the model and the target; of a profile's file its name."""
    target = PurePath(request.target).stem if request.target.endswith(".toml") else request.target
    name = bundle_name(request)
    return decision_key(name, target), name, target


def _matches(names: tuple[str, ...], pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)


def _picks_nothing(pattern: str, names: Sequence[tuple[str, str, str]]) -> UsageError:
    bundles = [bundle for bundle, _, _ in names]
    close = difflib.get_close_matches(pattern, dict.fromkeys(name for known in names for name in known), n=1)
    meant = f'; did you mean "{close[0]}"?' if close else ""
    more = [f"and {len(bundles) - MAX_LISTED_BUNDLES} more"] if len(bundles) > MAX_LISTED_BUNDLES else []
    return UsageError(
        f"--only {pattern} matches no bundle, model or target of the project{meant}",
        details=("its bundles are", *bundles[:MAX_LISTED_BUNDLES], *more),
        hint="give a name, or a glob in quotes: --only 'detector-*'",
    )
