"""`bundler lock`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bundler.cli.console import open_console
from bundler.cli.options import CacheOnly, Json
from bundler.cli.printing import echo, print_json
from bundler.environments.registry import Environments
from bundler.execution.cache import open_cache
from bundler.project.load import find_project
from bundler.project.lock import read_lock
from bundler.project.pinning import pin_project
from bundler.project.requests import project_requests

EPILOG = "Example:\n\n  bundler lock --upgrade"


def run(
    *,
    upgrade: Annotated[bool, typer.Option("--upgrade", help="Resolve all versions again.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when the lock is out of date.")] = False,
    settings: CacheOnly,
    json: Json = False,
) -> None:
    """Update the lock, and print what changed."""
    loaded = find_project(Path.cwd())
    requests = project_requests(loaded)
    before = None if upgrade else read_lock(loaded.lock_path)
    environments = Environments(open_cache(settings.cache_choice).root, before.environments if before else None)
    if upgrade:
        environments.forget_kept_locks()
    with open_console("plain") as listener:
        pinned = pin_project(loaded, requests, environments, locked=check, upgrade=upgrade, listener=listener)
    if json:
        print_json({"lock": str(loaded.lock_path), "changes": pinned.changes, "environments": pinned.lock.environments})
        return
    echo(f"{loaded.lock_path.name}: {len(pinned.lock.environments)} environments pinned")
    for line in pinned.changes:
        echo(f"  {line}")
