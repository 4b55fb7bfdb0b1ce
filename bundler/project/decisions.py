"""Decisions by measuring: given to the builds from the lock, and recorded there afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bundler.pipeline.requests import BuildRequest, decision_key
from bundler.pipeline.results import BuildResult
from bundler.project.lock import LockFile, write_lock


def with_decisions(requests: Sequence[BuildRequest], lock: LockFile, *, locked: bool) -> tuple[BuildRequest, ...]:
    """The requests with what the lock holds; with `locked` they may decide nothing new."""
    return tuple(replace(request, decisions=lock.decisions, locked=locked) for request in requests)


def record_decisions(path: Path, lock: LockFile, results: Sequence[BuildResult]) -> bool:
    """Write what the builds decided into the lock at `path`; whether anything was new."""
    found = {decision_key(result.name, result.target): result.decisions for result in results if result.decisions}
    merged = {**lock.decisions, **found}
    if merged == dict(lock.decisions):
        return False
    write_lock(path, replace(lock, decisions=merged))
    return True
