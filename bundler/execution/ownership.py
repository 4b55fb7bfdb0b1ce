"""Checks who can write to a folder. Nothing is executed that others than the user and root could have written."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from bundler.support.users import name_user

PRIVATE = 0o700
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def others_access(folder: Path) -> str | None:
    """Why others may have written to `folder`; None when only the user and root can.

    Access lists of Windows are not checked: the user's own folders are private there by default.
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
    except OSError:  # a read-only disk: others cannot write either
        return False
    return True
