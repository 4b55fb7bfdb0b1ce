"""A temporary cache over a read-only one: its results are used, and new results are removed with the process."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from bundler.execution.locks import FileLock
from bundler.support.remembered import BEHIND

_PREFIX = "bundler-readonly-"
_LEAST_AGE = 600.0
"""Seconds before an unlocked folder counts as left over: its owner may be about to lock it."""


def is_readonly(root: Path) -> bool:
    """Whether nothing can be written to the cache at `root`, which is there."""
    return not all(os.access(place, os.W_OK | os.X_OK) for place in (root, root / "tmp") if place.exists())


def open_over(root: Path) -> tuple[Path, FileLock]:
    """A new private folder with `root` behind it, and the lock that says it is in use. Raises `OSError`."""
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = FileLock(folder / "lock")
    lock.try_acquire()
    (folder / BEHIND).symlink_to(root, target_is_directory=True)
    return folder, lock


def remove_overlay(folder: Path, lock: FileLock) -> None:
    """Remove the folder, not the read-only cache."""
    shutil.rmtree(folder, ignore_errors=True)
    lock.release()


def _sweep() -> None:
    """Remove what killed processes of this user left."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            status = folder.lstat()
            own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
            lock = FileLock(folder / "lock")
            if own and time.time() - status.st_mtime > _LEAST_AGE and lock.try_acquire():
                remove_overlay(folder, lock)
        except OSError:
            continue
