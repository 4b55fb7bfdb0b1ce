"""Checks that paths from untrusted files stay inside their folder."""

from __future__ import annotations

import stat
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final

MAX_PARTS: Final = 64
"""Maximum number of parts of a path; paths that bundler writes have at most six, and none of 121 models of public
packages has external data.
"""


def refuse_path(path: str) -> str | None:
    """Why a path with forward slashes must not be opened below a folder, or None. A path that would leave the folder on
    any system is refused on every system, so that a bundle is valid on all systems or on none.
    """
    if not path or "\0" in path:
        return "not a file name"
    if PurePosixPath(path).is_absolute() or PureWindowsPath(path).drive or PureWindowsPath(path).root:
        return "absolute"
    if "\\" in path:
        return "a backslash"
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "leaves its folder"
    return "nested too deeply" if len(parts) > MAX_PARTS else None


def find_inside(root: Path, path: str) -> Path:
    """The regular file at `path` below `root`. Raises `ValueError` when it would leave `root` or is not a regular file
    (a link, or a pipe that could block), and `OSError` when its status cannot be read.
    """
    refusal = refuse_path(path)
    if refusal:
        raise ValueError(f"{path[:80]!r}: {refusal}")
    place = root
    parts = path.split("/")
    for part in parts[:-1]:
        place /= part
        if not stat.S_ISDIR(place.lstat().st_mode):
            raise ValueError(f"{path[:80]!r}: {part!r} is not a folder")
    place /= parts[-1]
    if not stat.S_ISREG(place.lstat().st_mode):
        raise ValueError(f"{path[:80]!r}: not a regular file")
    return place


def find_files(root: Path) -> dict[str, Path]:
    """Every file below `root` by its path with forward slashes. Raises `ValueError` for a link of any kind and for
    anything else that is neither a folder nor a regular file, and `OSError` when a status cannot be read.

    Hard links are refused because copying one would publish a file from elsewhere.
    """
    found = {}
    for place in root.rglob("*"):
        status = place.lstat()
        if stat.S_ISDIR(status.st_mode):
            continue
        path = place.relative_to(root).as_posix()
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{path[:80]!r}: not a regular file")
        if status.st_nlink > 1:
            raise ValueError(f"{path[:80]!r}: a hard link")
        found[path] = place
    return found
