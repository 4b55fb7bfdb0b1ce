"""Artifacts: immutable sets of files with a digest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bundler.model.digests import digest_file, digest_json


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """One file of an artifact or a bundle. `path` is relative, with forward slashes; `size` is in bytes."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """Files that belong together, known by the digest over their paths, sizes and contents."""

    digest: str
    files: tuple[FileRecord, ...]

    @property
    def size(self) -> int:
        """Bytes in all files together."""
        return sum(record.size for record in self.files)


def record_folder(folder: Path, known: Mapping[str, str] | None = None) -> Artifact:
    """Hash every regular file below `folder`, in the order of their paths.

    `known` are digests, by path, of files that were just copied from where they are kept by digest.
    """
    digests = known or {}
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    # Hashing lets go of the interpreter's lock, so threads share it.
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        return make_artifact(tuple(pool.map(lambda path: _record_file(path, folder, digests), paths)))


def _record_file(path: Path, folder: Path, known: Mapping[str, str]) -> FileRecord:
    name = path.relative_to(folder).as_posix()
    return FileRecord(path=name, size=path.stat().st_size, sha256=known.get(name) or digest_file(path))


def make_artifact(files: tuple[FileRecord, ...]) -> Artifact:
    """An artifact of `files`; its digest does not depend on their order."""
    ordered = tuple(sorted(files, key=lambda record: record.path))
    return Artifact(digest=digest_json(ordered), files=ordered)
