"""Errors of a disk, in words. Standard library only: a worker imports this too."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from pathlib import Path

from bundler.model.errors import StageError
from bundler.support.text import format_bytes

_FULL = {errno.ENOSPC, errno.EDQUOT}
_OTHERS = {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS}
"""Of missing folders and permissions, whatever space is left: /proc has none."""
_FULL_TEXTS = ("no space left on device", "disk quota exceeded", "not enough space on the disk")
_NOTHING_LEFT = 1 << 20
"""Free bytes below which a failure without a known cause is reported as a full disk."""


def storage_error(error: BaseException, doing: str, folder: Path, *more: Path) -> StageError | None:
    """The error for a full disk, or for a file that the limits of this process refuse; None for any other. `folder` was
    written to, and perhaps `more`.
    """
    if _is_too_large(error):
        return _too_large_error(doing)
    return full_disk_error(error, doing, folder, *more)


def full_disk_error(error: BaseException, doing: str, folder: Path, *more: Path) -> StageError | None:
    """The error for a full disk; None for any other."""
    if not is_disk_full(error, folder):
        return None
    named = getattr(error, "filename", None)
    return _full_error(f"{doing} failed", *(() if named is None else (Path(os.fsdecode(named)),)), folder, *more)


def _is_too_large(error: BaseException) -> bool:
    return getattr(error, "errno", None) == errno.EFBIG or "file too large" in str(error).lower()


def _too_large_error(doing: str) -> StageError:
    return StageError(
        f"a file exceeded the size limit of this process: {doing} failed",
        hint="the limit is 90% of the free space on the cache's disk, or `ulimit -f` if lower: free some space, or "
        "put the cache on another disk with BUNDLER_CACHE",
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


def find_full_disk(said: str, doing: str, *places: Path) -> StageError | None:
    """The error where a program that failed `said` that a disk is full; None for any other. The disk is that of a path
    in its words, of `places` that it writes to, or of the folder for temporary files.
    """
    lines = [line for line in said.splitlines() if any(text in line.lower() for text in _FULL_TEXTS)]
    if not lines:
        return None
    named = (Path(path) for line in lines for path in _PATH.findall(line))
    return _full_error(f"could not {doing}", *named, *places, Path(tempfile.gettempdir()))


_PATH = re.compile(r"""(?:(?<=[\s'"`(=:])|^)(/[^\s'"`():]+)""")


def _full_error(consequence: str, *places: Path) -> StageError:
    """The error for a full disk: the fullest of those that `places` lie on. What was written may be gone
    again, so there may be some space by now.
    """
    place = min(map(_find_existing, places), key=_free_bytes)
    free, whole = map(format_bytes, _measure(place))
    return StageError(
        f"no space left on {_find_mount(place)} ({free} free of {whole}): {consequence}",
        hint=_HINT,
    )


_HINT = (
    "free space on that disk (`bundler cache trim`), or keep the cache on another with BUNDLER_CACHE, and "
    "temporary files with TMPDIR"
)


def _find_mount(place: Path) -> Path:
    return next((folder for folder in (place, *place.parents) if os.path.ismount(folder)), place)


def _find_existing(place: Path) -> Path:
    place = place.absolute()
    return next((folder for folder in (place, *place.parents) if folder.is_dir()), place)


def _free_bytes(folder: Path) -> int:
    return _measure(folder)[0]


def _measure(folder: Path) -> tuple[int, int]:
    """Bytes that are free, and all."""
    for candidate in (folder, *folder.parents):
        try:
            usage = shutil.disk_usage(candidate)
        except OSError:
            continue
        return usage.free, usage.total
    return 0, 0
