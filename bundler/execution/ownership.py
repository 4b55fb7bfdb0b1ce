"""Who may write to a folder: the user (and root), or others too. Nothing is executed that others could have written."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from bundler.support.users import name_user

PRIVATE = 0o700
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def others_access(folder: Path) -> str | None:
    """Why what stands in `folder` may be of others, in words; None where only the user and root can write to it.

    Windows' access lists are not looked at: there the user's own folders are private from the start.
    """
    if sys.platform == "win32":
        return None
    status = folder.stat()
    if status.st_uid not in {os.geteuid(), 0}:
        return f"it belongs to another user ({name_user(status.st_uid)})"
    if status.st_mode & _OTHERS_WRITE:
        return f"others may write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def make_private(folder: Path) -> bool:
    """Take all rights on the user's own folder from others; True when they had any."""
    if sys.platform == "win32":
        return False
    status = folder.stat()
    if status.st_uid != os.geteuid() or not stat.S_IMODE(status.st_mode) & ~PRIVATE:
        return False
    try:
        folder.chmod(PRIVATE)
    except OSError:  # on a read-only disk nobody else writes either
        return False
    return True
