"""Checks who owns the project file: one in a folder above may be another user's, and it decides which programs run."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from bundler.model.errors import UsageError
from bundler.model.paths import real_path
from bundler.support.users import name_user

SAFE = "BUNDLER_SAFE_DIRECTORY"
"""Folders, separated as in PATH, whose project files count whoever owns them; `*` is all."""


def check_owner(path: Path) -> None:
    """Raise `UsageError` when the project file at `path`, or the lock beside it, is another user's.

    A link counts as its own owner's as well: it decides what the file's paths are relative to. Systems without
    user ids are not checked.
    """
    if not hasattr(os, "getuid") or _is_safe(path.parent):
        return
    for place in (path, path.with_name("bundler.lock")):
        strangers = _owners(place) - _own_users()
        if strangers:
            raise _not_yours(place, path.parent, min(strangers))


def _own_users() -> set[int]:
    """Ours, and that of the user who called sudo: root works on that user's files then."""
    own = os.geteuid()
    caller = os.environ.get("SUDO_UID", "")
    return {own, int(caller)} if own == 0 and caller.isdecimal() else {own}


def _owners(path: Path) -> set[int]:
    try:
        found = path.lstat()
        return {found.st_uid, path.stat().st_uid} if stat.S_ISLNK(found.st_mode) else {found.st_uid}
    except OSError:  # not there, or a link to nothing: whoever reads it says so
        return set()


def _is_safe(folder: Path) -> bool:
    named = os.environ.get(SAFE, "").split(os.pathsep)
    return "*" in named or any(real_path(Path(name)) == real_path(folder) for name in named if name)


def _not_yours(place: Path, folder: Path, owner: int) -> UsageError:
    return UsageError(
        f"{place} belongs to another user ({name_user(owner)}), and a project file decides which programs run",
        hint=f"when you trust it, run `export {SAFE}={shlex.quote(str(folder))}` and try again; or make it yours: "
        f"`sudo chown {os.geteuid()} {shlex.quote(str(place))}`",
    )
