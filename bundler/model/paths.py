"""File names that tools can take, and where they lead."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bundler.model.errors import UsageError


def check_path_text(path: Path, what: str) -> None:
    """Raise `UsageError` for a path that is not UTF-8: ONNX Runtime and the installers take no other, and each fails in
    its own way. Python holds the bytes that are none as lone surrogates.
    """
    place = path.absolute()
    try:
        str(place).encode()
    except UnicodeEncodeError as error:
        part = next(part for part in place.parts if not _is_text(part))
        if _is_utf8(place):
            raise UsageError(
                f"Python reads file names as {sys.getfilesystemencoding()} here, and the path of {what} is UTF-8: "
                f"{ascii(part)[:200]}",
                hint="start Python with PYTHONUTF8=1",
            ) from error
        raise UsageError(
            f"the path of {what} is not UTF-8: {ascii(part)[:200]}",
            hint="rename that file or folder, or name another place",
        ) from error


def _is_utf8(place: Path) -> bool:
    try:
        os.fsencode(place).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def real_path(path: Path) -> Path:
    """Where `path` leads. It never raises: of links that lead to each other, one remains, which nothing opens
    (`Path.resolve` raises `RuntimeError` there up to Python 3.12, and nothing from 3.13 on).
    """
    return Path(os.path.realpath(path))


def user_path(text: str) -> Path:
    """A path as a user writes it: `~` is the home. It never raises: `~nobody` of an unknown user stays as it is."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - `Path.expanduser` raises


def _is_text(part: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in part)
