"""Locks between processes; the system releases them when their process ends, also after a crash."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

POLL_SECONDS = 0.03

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int, *, shared: bool) -> bool:
        del shared  # Windows' byte-range locks, as Python has them, are exclusive: readers then queue
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import errno
    import fcntl

    _BUSY = {errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN}

    def _lock(descriptor: int, *, shared: bool) -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            # A file system without locks: then two builds may compute the same key, which is harmless.
            return error.errno not in _BUSY
        return True


class FileLock:
    """A lock on the file `path`, which is made when needed. Two objects exclude each other within a process too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def try_acquire(self, *, shared: bool = False) -> bool:
        """Take the lock if it is free; True when it is ours now."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        if _lock(descriptor, shared=shared) and self._is_current(descriptor):
            self._descriptor = descriptor
            return True
        os.close(descriptor)
        return False

    def release(self, *, remove: bool = False) -> None:
        """Release it. `remove` deletes the file first, so that a process that has it open sees that it is stale."""
        if self._descriptor is None:
            return
        if remove:
            with contextlib.suppress(OSError):
                self.path.unlink()
        os.close(self._descriptor)
        self._descriptor = None
        if remove and sys.platform == "win32":  # Windows removes no open file
            with contextlib.suppress(OSError):
                self.path.unlink()

    def _is_current(self, descriptor: int) -> bool:
        """Whether the locked file is still that at the path: its former holder may have removed it."""
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except OSError:
            return False


@contextlib.contextmanager
def hold(
    path: Path, *, shared: bool = False, remove: bool = False, while_waiting: Callable[[], None] | None = None
) -> Iterator[None]:
    """Hold the lock at `path`. `while_waiting` is called again and again until it is free; it may raise to give up."""
    lock = FileLock(path)
    while not lock.try_acquire(shared=shared):
        if while_waiting is not None:
            while_waiting()
        time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        lock.release(remove=remove)
