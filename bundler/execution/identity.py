"""File identity: what lets us trust a digest without reading the file again."""

from __future__ import annotations

import os
import time
from pathlib import Path

Identity = tuple[int, int, int, int]
"""Size in bytes, modification and change time in ns, inode. Who alters a file and sets its modification time back still
moves its change time."""

SETTLE_NS = 100_000_000
"""A file that changed this short a time ago may change again within one tick of the file system's clock (10 ms on
kernels with a coarse one), unseen: its digest is used but not remembered."""


def identify(path: Path) -> Identity:
    """The identity of the file at `path`, links followed. Raises `OSError`."""
    return identity_of(path.stat())


def identity_of(status: os.stat_result) -> Identity:
    """The identity in a stat result."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def is_settled(identity: Identity) -> bool:
    """Whether enough time has passed since the file's last change to remember its digest."""
    return time.time_ns() - max(identity[1], identity[2]) > SETTLE_NS
