"""What `bundler lock` does and prints."""

from __future__ import annotations

from pathlib import Path

from bundler.cli.console import open_console
from bundler.cli.printing import echo, print_json
from bundler.environments.registry import Environments
from bundler.execution.cache import open_cache
from bundler.project.load import find_project
from bundler.project.lock import read_lock
from bundler.project.pinning import pin_project
from bundler.project.requests import project_requests


def run_lock(*, upgrade: bool, check: bool, cache: str | None, as_json: bool) -> None:
    """Bring the lock up to date, and print what changed."""
    loaded = find_project(Path.cwd())
    requests = project_requests(loaded, targets=(), output=None, overrides=(), bundle_format=None, prove=True)
    before = None if upgrade else read_lock(loaded.lock_path)
    environments = Environments(open_cache(cache).root, before.environments if before else None)
    if upgrade:
        environments.forget_kept_locks()
    with open_console("plain") as listener:
        pinned = pin_project(loaded, requests, environments, locked=check, upgrade=upgrade, listener=listener)
    if as_json:
        print_json({"lock": str(loaded.lock_path), "changes": pinned.changes, "environments": pinned.lock.environments})
        return
    echo(f"{loaded.lock_path.name}: {len(pinned.lock.environments)} environments pinned")
    for line in pinned.changes:
        echo(f"  {line}")
