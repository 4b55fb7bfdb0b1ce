"""Jars with equal bytes for equal content, in which models are stored so that a loader can map them in place."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from bundler.support.files import FILE_MODE

ALIGNMENT: Final = 4096
"""Bytes; data of the payload begin at a multiple of it, as in an APK that zipalign has aligned for mapping."""

_STAMP: Final = (1980, 1, 1, 0, 0, 0)
_UNIX: Final = 3
_HEADER: Final = 30
"""Bytes of a local header without its name (.ZIP file format specification, 4.3.7)."""

_PADDING_ID: Final = b"\x35\xd9"
"""The extra field that Android's zipalign fills, 0xd935; readers skip it."""

_LARGE: Final = 1 << 31


def list_files(folder: Path, prefix: str) -> dict[str, Path | bytes]:
    """The files below a folder by their names in an archive, which begin with `prefix`, in one order everywhere."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"{prefix}{path.relative_to(folder).as_posix()}": path for path in paths}


def write_jar(target: Path, files: Mapping[str, Path | bytes], aligned: Callable[[str], bool] = bool) -> None:
    """Write the entries in the order of `files`, stored, with one time stamp and one mode. The data of those whose name
    is `aligned` begin on a page.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as jar:
        for name, source in files.items():
            entry = zipfile.ZipInfo(name, _STAMP)
            entry.create_system = _UNIX
            entry.external_attr = (0o100000 | FILE_MODE) << 16
            if aligned(name) and jar.fp is not None:
                entry.extra = _pad(jar.fp.tell() + _HEADER + len(name.encode("utf-8")))
            _write_entry(jar, entry, source)
    target.chmod(FILE_MODE)


def _write_entry(jar: zipfile.ZipFile, entry: zipfile.ZipInfo, source: Path | bytes) -> None:
    if isinstance(source, bytes):
        jar.writestr(entry, source)
        return
    entry.file_size = source.stat().st_size
    with source.open("rb") as reader, jar.open(entry, "w", force_zip64=entry.file_size >= _LARGE) as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)


def _pad(start: int) -> bytes:
    """The extra field after which data that would begin at `start` begin on a page."""
    needed = -(start + 4) % ALIGNMENT
    return _PADDING_ID + needed.to_bytes(2, "little") + bytes(needed)


def repack_jar(source: Path, target: Path, keep: Callable[[str], bool]) -> None:
    """The same jar with only the files to `keep`; compressed again as they were, by rules of our own."""
    with zipfile.ZipFile(source) as old:
        names = [name for name in old.namelist() if not name.endswith("/") and keep(name)]
        write_jar(target, {name: old.read(name) for name in names})
