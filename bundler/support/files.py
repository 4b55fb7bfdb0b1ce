"""Files and folders that a reader sees whole or not at all: made under another name, then renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o644
"""Mode of a bundle's files, independent of the umask."""
_BEGINNING: Final = 100_000
"""Bytes of a system file that are read; one CPU's entry in /proc/cpuinfo has about 1,500."""


def name_draft(path: Path) -> Path:
    """An unused hidden path beside `path`; trimming the cache removes leftovers with such names."""
    return path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(3)}")


@contextmanager
def replacing(path: Path, draft: Path | None = None) -> Iterator[Path]:
    """The block writes to the path that it is given, which becomes `path` if the block succeeds. `draft` is an unused
    path on the same file system, by default one beside it. Raises `OSError`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = draft or name_draft(path)
    try:
        yield draft
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def replace_whole(path: Path, data: bytes, *, mode: int | None = None, draft: Path | None = None) -> None:
    """Write a file with `mode` (None: what the umask leaves). Raises `OSError`."""
    with replacing(path, draft) as place:
        place.write_bytes(data)
        if mode is not None:
            place.chmod(mode)


def copy_content(source: Path, target: Path) -> None:
    """Write the bytes of `source` to `target`, sharing blocks where the file system can. Raises `OSError`."""
    if not clone_content(source, target):
        shutil.copyfile(source, target)


def clone_content(source: Path, target: Path) -> bool:
    """Make `target` share all blocks of `source` until one of both is altered; False, and no `target`, where the file
    system (btrfs, XFS, bcachefs and few others, within one of them) does not have that. Raises `OSError`.
    """
    if sys.platform != "linux":
        return False
    import fcntl  # noqa: PLC0415 (Windows has none)

    with source.open("rb") as reader, target.open("wb") as writer, contextlib.suppress(OSError):
        fcntl.ioctl(writer, _FICLONE, reader.fileno())
        return True
    target.unlink()
    return False


_FICLONE: Final = 0x40049409
"""Linux's request to share all blocks of a file (linux/fs.h); `fcntl` has a name for it from Python 3.12 on."""


def read_beginning(path: Path) -> str:
    """The beginning of a file as text; empty where it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(_BEGINNING).decode("utf-8", "replace")
    except OSError:
        return ""


def remove_whole(place: Path) -> None:
    """Remove a folder or a file; of a link only the link itself."""
    if place.is_symlink() or place.is_file():
        place.unlink(missing_ok=True)
    else:
        shutil.rmtree(place, ignore_errors=True)


def publish_folder(
    draft: Path,
    final: Path,
    is_whole: Callable[[Path], bool] = Path.is_dir,
    remove: Callable[[Path], None] = remove_whole,
) -> None:
    """Rename the folder `draft` to `final`. The first of several processes wins; anything there that is not whole is
    removed with `remove` and replaced. Raises `OSError`.
    """
    try:
        draft.rename(final)
    except OSError:
        if not os.path.lexists(final):
            raise
    else:
        return
    if is_whole(final):
        return
    remove(final)
    try:
        draft.rename(final)
    except OSError:
        if not is_whole(final):
            raise
