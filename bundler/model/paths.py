"""File names that tools can take."""

from __future__ import annotations

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
        raise UsageError(
            f"the path of {what} is not UTF-8: {ascii(part)[:200]}",
            hint="rename that file or folder, or name another place",
        ) from error


def _is_text(part: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in part)
