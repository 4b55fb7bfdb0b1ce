"""Writing files of a bundle: fixed modes, line ends and encodings, so that equal input gives equal bytes."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from bundler.model.errors import StageError
from bundler.support.disk import full_disk_error
from bundler.support.files import FILE_MODE, copy_content, replace_whole

PROGRAM_MODE = 0o755
_CACHE = "__pycache__"


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 with Unix line ends, in one step: a reader sees the old file or the new one."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file in one step. Raises `StageError` when the disk does not take it."""
    try:
        replace_whole(path, data, mode=FILE_MODE)
    except OSError as error:
        raise _cannot_write(path, error) from error


def copy_file(source: Path, target: Path, mode: int = FILE_MODE) -> None:
    """Copy the bytes (the file system shares them where it copies on write) and set `mode`. Raises `StageError`."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        copy_content(source, target)
        target.chmod(mode)
    except OSError as error:
        raise _cannot_write(target, error) from error


def copy_tree(source: Path, target: Path, without: Collection[str] = ()) -> None:
    """Copy every file below `source` but hidden ones, byte code, which tools leave in a source tree, and the paths
    `without`, which are relative to `source`.

    Raises `StageError`.
    """
    for path in sorted(source.rglob("*")):
        relative = path.relative_to(source)
        if relative.as_posix() in without:
            continue
        if path.is_file() and not any(part.startswith(".") or part == _CACHE for part in relative.parts):
            copy_file(path, target / relative)


def _cannot_write(path: Path, error: OSError) -> StageError:
    return full_disk_error(error, f"writing {path.name}", path.parent) or StageError(
        f"cannot write {path.name}: {error.strerror or error}",
        hint="free space on the disk or choose another --output",
        details=(str(path),),
    )
