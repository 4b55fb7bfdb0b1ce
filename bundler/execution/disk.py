"""Errors of a disk, in words. Standard library only: a worker imports this too."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from bundler.model.errors import StageError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_OTHERS = {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS}
"""Of missing folders and permissions, whatever space is left: /proc has none."""
_FULL_TEXTS = ("no space left on device", "disk quota exceeded", "not enough space on the disk")
_NOTHING_LEFT = 1 << 20
"""Free bytes below which a failure without a known cause is reported as a full disk."""


def storage_error(error: BaseException, doing: str, folder: Path) -> StageError | None:
    """The error for a full disk, or for a file that the limits of this process refuse; None for any other."""
    if _is_too_large(error):
        return _too_large_error(doing)
    return disk_full_error(doing, folder) if is_disk_full(error, folder) else None


def _is_too_large(error: BaseException) -> bool:
    return getattr(error, "errno", None) == errno.EFBIG or "file too large" in str(error).lower()


def _too_large_error(doing: str) -> StageError:
    return StageError(
        f"a file exceeded the size limit of this process: {doing} failed",
        hint="a process may write files of nine tenths of what is free on the cache's disk, and no more than the "
        "shell allows (`ulimit -f`): free some space, or put the cache on another disk with BUNDLER_CACHE",
    )


def is_disk_full(error: BaseException, folder: Path) -> bool:
    """Whether `error`, which arose while `folder` was written to, comes from a full disk.

    Native libraries turn the system's error into an exception of their own, so its text counts too.
    """
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    if any(text in str(error).lower() for text in _FULL_TEXTS):
        return True
    known = isinstance(error, OSError) and error.errno in _OTHERS
    return isinstance(error, (OSError, RuntimeError)) and not known and _free_bytes(folder) < _NOTHING_LEFT


def disk_full_error(doing: str, folder: Path) -> StageError:
    """The error for a full disk; `doing` says what was being done (`writing the result of optimize`)."""
    free = _free_bytes(folder)
    return StageError(
        f"the disk is full: {doing} in {folder} failed ({free / 1e6:.1f} MB free)",
        hint="free some space, or run `bundler cache trim`, or put the cache on another disk with BUNDLER_CACHE",
    )


def _free_bytes(folder: Path) -> int:
    for candidate in (folder, *folder.parents):
        try:
            return shutil.disk_usage(candidate).free
        except OSError:
            continue
    return 0
