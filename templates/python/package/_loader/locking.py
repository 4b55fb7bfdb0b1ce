"""One process at a time: a lock that the system takes back from whoever dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PAUSE = 0.1
"""Seconds between two looks at a lock that another process holds."""


@contextmanager
def hold(path: str, say: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of the file at `path`; `say` is called once when it is another's and we wait.

    Raises `OSError` when the file cannot be made.
    """
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(path, "ab", buffering=0) as stream:
        if not _try(stream.fileno()):
            say()
            while not _try(stream.fileno()):
                time.sleep(_PAUSE)
        yield  # Closing the file gives the lock back; the file stays, for another may be waiting on it.


def _try(descriptor: int) -> bool:
    """Whether the lock is ours now."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
