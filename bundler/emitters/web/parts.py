"""Files that the loader fetches: modules stored as text, and large files in parts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from bundler.emitters.writing import copy_file, write_bytes
from bundler.model.artifacts import FileRecord

_MEGABYTE = 1_000_000
_MODULE = ".mjs"
_TEXT = ".txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One file as the loader sees it, and the files that it is stored in: itself, or its parts in order.

    All paths are relative to the bundle, with forward slashes.
    """

    path: str
    size: int
    sha256: str
    parts: tuple[FileRecord, ...]


def place_asset(source: Path, folder: Path, record: FileRecord, part_mb: float) -> Asset:
    """Store `source`, which `record` describes, in the bundle `folder`. Raises `StageError` when the disk is full."""
    count = count_parts(record.size, part_mb)
    if count == 1:
        stored = replace(record, path=name_stored(record.path))
        copy_file(source, folder / stored.path)
        parts: tuple[FileRecord, ...] = (stored,)
    else:
        parts = _write_parts(source, folder, record, count)
    return Asset(path=record.path, size=record.size, sha256=record.sha256, parts=parts)


def name_stored(path: str) -> str:
    """Where the whole file `path` is stored: a module as text.

    Development servers and minifiers rewrite what is called a module, and the loader runs the very bytes that were
    built or none. It makes the module of them itself, so no other tool has to know that it is one.
    """
    return f"{path}{_TEXT}" if path.endswith(_MODULE) else path


def count_parts(size: int, part_mb: float) -> int:
    """The fewest parts of which none is larger than `part_mb` (of 1,000,000 bytes)."""
    limit = max(1, int(part_mb * _MEGABYTE))
    return max(1, -(-size // limit))


def _write_parts(source: Path, folder: Path, record: FileRecord, count: int) -> tuple[FileRecord, ...]:
    """Parts of one size, so that a browser that fetches them side by side waits for none of them in particular."""
    length = -(-record.size // count)
    parts = []
    with source.open("rb") as stream:
        for position in range(count):
            data = stream.read(length)
            path = f"{record.path}.{position:03d}"
            write_bytes(folder / path, data)
            parts.append(FileRecord(path=path, size=len(data), sha256=hashlib.sha256(data).hexdigest()))
    return tuple(parts)
