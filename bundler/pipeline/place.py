"""Putting a finished folder into place, so that nobody ever sees half of one."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from bundler.execution.locks import FileLock, hold
from bundler.execution.temporary import find_offered
from bundler.model.errors import StageError, UsageError
from bundler.model.paths import check_path_text
from bundler.support.disk import full_disk_error
from bundler.support.files import remove_whole

MARK = "bundle.json"
"""A folder that holds this file is a bundle of ours, and may be replaced by its successor."""
_REFUSALS: Final = frozenset(
    {*(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO), *(errno.EACCES, errno.EPERM, errno.EBUSY)}
)
"""What a disk says when it is full, limited, read-only, broken, another's or in use. All else is a defect of ours."""
_STAGED: Final = ".tmp"
_LOCK: Final = ".lock"


@contextmanager
def staging_folder(final: Path) -> Iterator[Path]:
    """An empty folder beside `final`, removed in the end whatever happens. Raises `UsageError` when it cannot be made,
    and `StageError` when the disk is full or refuses what the block writes.

    We hold the lock beside it for as long as we work: what a killed build left is swept by the next one. Its name has
    our process number too, for file systems without locks; alone that says little, since the first process of every
    container has the same.
    """
    folder = final.parent / f".{final.name}.{os.getpid()}-{secrets.token_hex(4)}{_STAGED}"
    lock = FileLock(_lock_of(folder))
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with _alone(final):
            _sweep(final)
            lock.try_acquire()
            folder.mkdir()
    except OSError as error:
        lock.release(remove=True)
        raise full_disk_error(error, f"making {folder.name}", final.parent) or UsageError(
            f"cannot write in {final.parent}: {error.strerror}", hint="choose another --output"
        ) from error
    try:
        yield folder
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        raise full_disk_error(error, f"writing {final.name}", folder, *filter(None, (find_offered(),))) or StageError(
            f"the bundle could not be written to {final.parent}: {error.strerror}",
            hint="free space on the disk (and on the disk of the cache), or choose another --output",
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release(remove=True)


def check_replaceable(final: Path) -> None:
    """Raise `UsageError` when `final` holds something that is not a bundle: we never delete what we did not write. So,
    too, for a path that tools do not take.
    """
    check_path_text(final, "the output")
    if os.path.ismount(final):  # `Path.is_mount` raises where another build renames the folder between its two looks
        raise UsageError(
            f"{final} is a mount point, which a bundle cannot replace",
            hint="mount the folder above it, or choose another --output",
        )
    _check_writable(final.parent)
    if _is_replaceable(final):
        return
    with suppress(OSError), _alone(final):  # another build may have been between its two renames
        if _is_replaceable(final):
            return
    raise UsageError(f"{final} exists and is not a bundle", hint="move it, or choose another --output")


def _check_writable(folder: Path) -> None:
    """Raise `UsageError` before minutes of work where a folder cannot be made, or nothing be written into it."""
    there = next((place for place in (folder, *folder.absolute().parents) if place.exists()), folder)
    if there.exists() and not there.is_dir():
        raise UsageError(f"{there} is a file; the output must be a folder", hint="choose another --output")
    if there.exists() and not os.access(there, os.W_OK | os.X_OK):
        raise UsageError(f"cannot write in {there}", hint="choose another --output, or check permissions")


def put_in_place(staged: Path, final: Path, write_beside: Callable[[], object] = lambda: None) -> None:
    """Rename `staged` to `final`, over the bundle that may be there, and write what belongs beside it: of two builds at
    once both are of one.

    A folder cannot be replaced in one call, so the old one is renamed aside first; killed in between, the old
    bundle is found by the next build and put back.
    """
    aside = _aside(final)
    with _alone(final):
        if final.exists():
            remove_whole(aside)  # of a build that was killed since we began
            final.rename(aside)
        staged.rename(final)
        remove_whole(aside)
        write_beside()


def _is_replaceable(final: Path) -> bool:
    if not final.exists():
        return True
    try:
        return (final / MARK).is_file() or not any(final.iterdir())
    except FileNotFoundError:  # renamed between the two looks
        return True
    except NotADirectoryError:
        return False


@contextmanager
def _alone(final: Path) -> Iterator[None]:
    """While no other build renames what stands at `final`."""
    with hold(final.parent / f".{final.name}.lock", remove=True):
        yield


def _aside(final: Path) -> Path:
    return final.parent / f".{final.name}.old"


def _sweep(final: Path) -> None:
    aside = _aside(final)
    if aside.exists() and not final.exists():
        aside.rename(final)
    remove_whole(aside)
    for path in tuple(final.parent.glob(f".{glob.escape(final.name)}.*{_STAGED}*")):
        folder = path.with_name(path.name.removesuffix(_LOCK))
        lock = FileLock(_lock_of(folder))
        if _is_left(folder) and lock.try_acquire():
            shutil.rmtree(folder, ignore_errors=True)
            lock.release(remove=True)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}{_LOCK}")


def _is_left(folder: Path) -> bool:
    owner = folder.name.removesuffix(_STAGED).rpartition(".")[2].partition("-")[0]
    return owner == str(os.getpid()) or not _is_alive(owner)


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True
