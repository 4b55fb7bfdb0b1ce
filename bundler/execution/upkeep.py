"""`bundler cache`: shows, trims and clears the cache. Safe while builds are running."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bundler.execution.cache import PARTS, TAG_NAME, Cache, is_ours
from bundler.execution.locks import hold
from bundler.execution.records import parse_record
from bundler.execution.scratch import live_since, upkeep_lock
from bundler.model.errors import UsageError

_UNITS = (
    "packages/*/??/*",
    "packages/*/sets/*",
    "compressed/??/*",
    *(f"{part}/*" for part in ("environments", "proofs", "images", "logs", "journal", "history", "sources", "answers")),
)
"""What can be removed on its own, besides artifacts and records: a wheel, a set of them, a whole environment, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartUsage:
    """One part of the cache. `size` is in bytes; `entries` counts what the part is made of (artifacts, wheels, …)."""

    name: str
    size: int
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trimmed:
    """What a trim removed and left, in bytes."""

    removed: int
    removed_entries: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """Something that can be removed on its own. `used` is when it last served, in seconds of the epoch."""

    paths: tuple[Path, ...]
    size: int
    used: float


def usage(cache: Cache) -> tuple[PartUsage, ...]:
    """What each part holds; parts that are empty are left out."""
    found = (_measure(cache.place, part) for part in PARTS if part != "tmp")
    return tuple(part for part in found if part.entries)


def trim(cache: Cache, *, size: int | None = None, age: float | None = None) -> Trimmed:
    """Remove what was not used for `age` seconds, then the least recently used until `size` bytes are left.

    What a running build has used is left alone; builds that start meanwhile wait.
    """
    _refuse_readonly(cache)
    cache.close()
    with hold(upkeep_lock(_made(cache.root)), remove=False):
        _remove_unfinished(cache.root)
        entries = sorted(_entries(cache.root), key=lambda entry: entry.used)
        total = sum(entry.size for entry in entries)
        spared = min(live_since(cache.root) or float("inf"), time.time())
        removed = count = 0
        for entry in entries:
            too_old = age is not None and time.time() - entry.used > age
            too_much = size is not None and total - removed > size
            if entry.used < spared and (too_old or too_much):
                _remove(entry)
                removed += entry.size
                count += 1
        _remove_orphans(cache, spared)
    return Trimmed(removed=removed, removed_entries=count, left=total - removed)


def clear(cache: Cache) -> int:
    """Delete the whole cache; returns the bytes that were freed.

    Raises `UsageError` when the folder does not bear our tag, or a build is at work in it.
    """
    _refuse_readonly(cache)
    if not is_ours(cache.root):
        raise UsageError(
            f"{cache.root} does not have bundler's {TAG_NAME}, so it is not deleted",
            hint="delete the folder yourself if it is a cache of bundler",
        )
    cache.close()
    freed = sum(part.size for part in usage(cache))
    with hold(upkeep_lock(_made(cache.root))):
        if live_since(cache.root) is not None:
            raise UsageError("a build is running in this cache", hint="wait for it to end, then clear the cache")
        for part in PARTS:
            shutil.rmtree(cache.root / part, ignore_errors=True)
    (cache.root / TAG_NAME).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        cache.root.rmdir()  # stays when it holds anything that is not ours
    return freed


def _refuse_readonly(cache: Cache) -> None:
    if cache.behind is not None:
        raise UsageError(f"the cache {cache.behind} is read-only", hint="remove entries where the cache is writable")


def _made(root: Path) -> Path:
    (root / "tmp").mkdir(parents=True, exist_ok=True)
    return root


def _entries(root: Path) -> Iterator[_Entry]:
    """Records with the artifacts that only they use go together; other parts by file or folder."""
    owners: dict[str, list[Path]] = {}
    sizes: dict[Path, int] = {}
    for path in (root / "records").glob("*/*.json"):
        record = parse_record(path.stem, _read(path))
        sizes[path] = _size(path)
        if record is not None and record.artifact is not None:
            owners.setdefault(record.artifact.digest, []).append(path)
    for digest, paths in owners.items():
        place = root / "artifacts" / digest[:2] / digest
        used = max(_used(path) for path in paths)
        total = _size(place) + sum(sizes.pop(path, 0) for path in paths)
        yield _Entry(paths=(*paths, place.with_name(f"{digest}.json"), place), size=total, used=used)
    for path, size in sizes.items():
        yield _Entry(paths=(path,), size=size, used=_used(path))
    for pattern in _UNITS:
        for path in root.glob(pattern):
            if path.name.startswith("."):
                continue  # being made
            yield _Entry(paths=(path,), size=_size(path), used=_used(path))


def _remove_orphans(cache: Cache, spared: float) -> None:
    """Artifacts that no record names: their record was altered, or a process was killed between the two."""
    named = set()
    for path in (cache.root / "records").glob("*/*.json"):
        record = parse_record(path.stem, _read(path))
        if record is not None and record.artifact is not None:
            named.add(record.artifact.digest)
    for place in (cache.root / "artifacts").glob("*/*"):
        if place.name.removesuffix(".json") not in named and _used(place) < spared:
            _remove(_Entry(paths=(place,), size=0, used=0.0))


def _remove_unfinished(root: Path) -> None:
    """Unfinished downloads and environments of processes that are gone for a day."""
    for pattern in ("packages/*/.*", "environments/.*", "locked/.*", "proofs/.*", "images/.*"):
        for path in root.glob(pattern):
            if time.time() - _used(path) > 24 * 3600:
                _remove(_Entry(paths=(path,), size=0, used=0.0))


def _remove(entry: _Entry) -> None:
    for path in entry.paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _measure(root: Path, part: str) -> PartUsage:
    depth = {"artifacts": "*/*/", "records": "*/*.json", "packages": "*/??/*", "compressed": "*/*"}.get(part, "*")
    entries = [path for path in (root / part).glob(depth) if not path.name.startswith(".")]
    return PartUsage(name=part, size=_size(root / part), entries=len(entries))


def _size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    try:
        if not path.is_dir():
            return path.lstat().st_size
        return sum(item.lstat().st_size for item in path.rglob("*") if not item.is_dir())
    except OSError:
        return 0


def _used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
