"""Temporary folders inside the cache, on the same file system as the store, so that a rename is enough.

Each process that writes holds a lock on its own scratch folder while it lives. A folder whose lock is free was left by
a killed process; the next process removes it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from bundler.execution.locks import FileLock, hold


class Scratch:
    """One process's temporary folder under `root/tmp`. A context manager; its end removes the folder."""

    def __init__(self, root: Path) -> None:
        self.id = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._root = root
        self._folder = root / "tmp" / self.id
        self._lock = FileLock(root / "tmp" / f"{self.id}.lock")
        self._count = 0

    def __enter__(self) -> Self:
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        with hold(upkeep_lock(self._root), shared=True):  # waits while another process trims
            while not self._lock.try_acquire():
                time.sleep(0.01)
            self._folder.mkdir()
        sweep(self._root)
        return self

    def __exit__(self, *_: object) -> None:
        remove_folder(self._folder)
        self._lock.release(remove=True)

    @property
    def folder(self) -> Path:
        """The folder itself."""
        return self._folder

    def new_path(self) -> Path:
        """An unused path in the scratch folder."""
        self._count += 1
        return self._folder / f"{self._count}-{secrets.token_hex(3)}"

    def new_folder(self) -> Path:
        """A new, empty folder."""
        folder = self.new_path()
        folder.mkdir()
        return folder


def upkeep_lock(root: Path) -> Path:
    """The lock that trimming holds; every process waits for it when it starts."""
    return root / "tmp" / "upkeep"


def remove_folder(folder: Path) -> None:
    """Remove the folder as far as possible, also with folders nested deeper than `shutil.rmtree` can recurse."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:
        with contextlib.suppress(OSError):
            _flatten(folder)
            folder.rmdir()


def thin_out(folder: Path) -> None:
    """Remove folders in the upper levels of `folder` in parallel, as far as possible: removing one mostly waits for the
    disk, and an environment has hundreds. Links are not followed.
    """
    if not shutil.rmtree.avoids_symlink_attacks:  # Windows
        return
    with contextlib.suppress(OSError), ThreadPoolExecutor(_REMOVERS) as pool:
        _thin_out(folder, None, _UPPER_LEVELS, pool)


_REMOVERS = 8
_UPPER_LEVELS = 4
"""Down to the packages of an environment: `lib/python3.12/site-packages/numpy`."""


def _thin_out(name: Path | str, parent: int | None, levels: int, pool: ThreadPoolExecutor) -> None:
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        with os.scandir(folder) as entries:
            inner = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        for place in inner if levels else ():
            with contextlib.suppress(OSError):
                _thin_out(place, folder, levels - 1, pool)
        list(pool.map(lambda place: _remove_at(place, folder), inner))
    finally:
        os.close(folder)


def _remove_at(name: str, parent: int) -> None:
    with contextlib.suppress(RecursionError):  # `remove_folder` removes the rest
        shutil.rmtree(name, ignore_errors=True, dir_fd=parent)


def _flatten(folder: Path) -> None:
    """Empty the folder by moving entries two levels down one level up, so that paths stay short. Raises `OSError`."""
    while places := list(folder.iterdir()):
        for place in places:
            if place.is_symlink() or not place.is_dir():
                place.unlink()
                continue
            for inner in place.iterdir():
                inner.rename(folder / secrets.token_hex(8))
            place.rmdir()


def sweep(root: Path) -> None:
    """Remove what dead processes left, also folders without a lock: a worker that outlives its process for a moment may
    make a folder again after it was removed with its lock.
    """
    folder = root / "tmp"
    left = {path.stem for path in folder.glob("*.lock")} | {path.name for path in folder.glob("*/")}
    for name in sorted(left):
        lock = FileLock(folder / f"{name}.lock")
        with contextlib.suppress(OSError):
            if lock.try_acquire():
                remove_folder(folder / name)
                lock.release(remove=True)


def live_since(root: Path) -> float | None:
    """When the oldest process that still uses this cache started (seconds of the epoch); None without one."""
    sweep(root)
    starts = []
    for path in (root / "tmp").glob("*.lock"):
        with contextlib.suppress(OSError):
            starts.append(path.stat().st_mtime)
    return min(starts, default=None)
