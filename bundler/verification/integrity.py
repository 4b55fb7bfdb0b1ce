"""Checks a bundle's files against its manifest. All differences are reported at once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bundler.model.artifacts import FileRecord
from bundler.model.confinement import MAX_PARTS, refuse_path
from bundler.model.digests import digest_file
from bundler.model.errors import VerificationError
from bundler.model.manifest import MANIFEST_NAME, parse_manifest, read_manifest_bytes
from bundler.verification.archives import compare_entries, is_archive, list_entries

MAX_LISTED_FAULTS = 20
"""Maximum number of faults that an error lists; the rest is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityResult:
    """The differences between a bundle and its manifest; each entry is a path, with the reason where there are several.

    `archives` are those whose entries differ from the manifest, or that hold one name twice, a link, or a path that
    leads out. `links` are symbolic links and others that are not regular files; they are never followed. `escapes` are
    paths of the manifest that could leave the bundle; they are never opened. `checked` counts the hashed files, `size`
    their bytes, and `removed` the files of byte code that were deleted. `content` is the manifest that they were
    compared with, and `digest` its SHA-256: use it instead of reading the file again, which could have changed since.
    """

    content: bytes = field(repr=False)
    digest: str
    checked: int
    size: int
    altered: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    escapes: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    removed: int = 0

    @property
    def sound(self) -> bool:
        """Whether every listed file is there and unaltered, and there are no other files."""
        return not self.faults

    @property
    def faults(self) -> tuple[str, ...]:
        """Every fault as one line."""
        named = (
            ("refused", self.escapes),
            ("not a regular file", self.links),
            ("altered", self.altered),
            ("archive", self.archives),
            ("missing", self.missing),
            ("not in the manifest", self.extra),
        )
        return tuple(f"{word}: {path}" for word, paths in named for path in paths)


def check_integrity(bundle: Path) -> IntegrityResult:
    """Compare the folder `bundle` with its manifest, hashing in parallel.

    Raises `VerificationError` when there is no readable manifest; differences are returned, not raised.
    """
    content = read_manifest_bytes(bundle)
    data = parse_manifest(bundle, content)
    listed, escapes = _read_listing(bundle, data)
    archives = _read_archives(bundle, data)
    found, links = _walk(bundle)
    present = [record for path, record in listed.items() if path in found]
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        faults = list(pool.map(lambda record: _find_fault(bundle, record), present))
        sound = [record.path for record, fault in zip(present, faults, strict=True) if fault is None]
        packed = list(pool.map(lambda path: _find_archive_faults(bundle, path, archives), sound))
    return IntegrityResult(
        content=content,
        digest=hashlib.sha256(content).hexdigest(),
        checked=len(present),
        size=sum(record.size for record in present),
        altered=tuple(fault for fault in faults if fault is not None),
        missing=tuple(path for path in sorted(listed) if path not in found and path not in links),
        extra=tuple(sorted(found - set(listed))),
        links=tuple(sorted(links)),
        escapes=tuple(escapes),
        archives=tuple(fault for group in packed for fault in group),
    )


def remove_byte_code(bundle: Path, result: IntegrityResult) -> IntegrityResult:
    """Delete the byte code that Python wrote beside listed sources when the bundle was run in place, where nothing else
    differs. It cannot be told from byte code that somebody else put there, which Python would run: so it is not
    ignored. Where it cannot be deleted it stays a fault.
    """
    if not result.extra or len(result.extra) != len(result.faults) or not all(map(_is_byte_code, result.extra)):
        return result
    left = tuple(path for path in result.extra if not _delete(bundle / path))
    return replace(result, extra=left, removed=len(result.extra) - len(left))


def _is_byte_code(path: str) -> bool:
    return path.endswith(".pyc") and path.split("/")[-2:-1] == ["__pycache__"]


def _delete(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    with suppress(OSError):  # the last file of the folder
        path.parent.rmdir()
    return True


def require_integrity(bundle: Path) -> IntegrityResult:
    """As `check_integrity`. Raises `VerificationError` listing the faults if there are any."""
    return require_sound(bundle, check_integrity(bundle))


def require_sound(bundle: Path, result: IntegrityResult) -> IntegrityResult:
    """`result`, the check of `bundle`. Raises `VerificationError` listing the faults if there are any."""
    if result.sound:
        return result
    faults = result.faults
    more = (f"… and {len(faults) - MAX_LISTED_FAULTS} more",) if len(faults) > MAX_LISTED_FAULTS else ()
    raise VerificationError(
        f"{bundle} is not the bundle that was built: {len(faults)} {'file differs' if len(faults) == 1 else 'differ'}",
        details=(*faults[:MAX_LISTED_FAULTS], *more),
        hint=_hint(result),
    )


def _hint(result: IntegrityResult) -> str:
    """An extra `.pyc` file is a fault because Python would run it, although its usual cause is harmless."""
    if len(result.extra) == len(result.faults) and all("__pycache__/" in path for path in result.extra):
        return "Python wrote these when the bundle was run in place: delete the __pycache__ folders"
    return "do not use it: copy the bundle again from where it was built, or build it again"


def _read_listing(bundle: Path, data: Mapping[str, Any]) -> tuple[dict[str, FileRecord], list[str]]:
    """The files that the manifest lists, by path, and its paths that are refused."""
    entries = data.get("files")
    if not isinstance(entries, list):
        raise _malformed(bundle, "it has no list of files")
    listed: dict[str, FileRecord] = {}
    escapes: list[str] = []
    for entry in entries:
        record = _read_record(bundle, entry)
        refusal = _refuse_path(record.path) or ("listed twice" if record.path in listed else None)
        if refusal:
            escapes.append(f"{record.path!r} ({refusal})")
        else:
            listed[record.path] = record
    return listed, escapes


def _read_record(bundle: Path, entry: Any) -> FileRecord:
    if not isinstance(entry, Mapping):
        raise _malformed(bundle, f"an entry of its list of files is {str(entry)[:80]!r}")
    path, size, sha256 = entry.get("path"), entry.get("size"), entry.get("sha256")
    if not isinstance(path, str) or type(size) is not int or not isinstance(sha256, str):
        raise _malformed(bundle, f"an entry of its list of files lacks path, size or sha256: {str(path)[:80]!r}")
    return FileRecord(path=path, size=size, sha256=sha256)


def _read_archives(bundle: Path, data: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """The entries of archives that the manifest lists, by the archive's path; those of an older bundle are unknown."""
    archives: dict[str, dict[str, int]] = data.get("archives", {})
    sound = isinstance(archives, dict) and all(
        isinstance(entries, dict) and all(type(size) is int for size in entries.values())
        for entries in archives.values()
    )
    if not sound:
        raise _malformed(bundle, "its list of archives is not one of files with sizes")
    return archives


def _refuse_path(path: str) -> str | None:
    """Why a path of the manifest must not be opened, or None."""
    return refuse_path(path) or ("the manifest itself" if path == MANIFEST_NAME else None)


def _walk(bundle: Path) -> tuple[set[str], set[str]]:
    """Regular files below `bundle`, and other entries (never followed, among them folders that are nested too deeply),
    as paths with forward slashes.
    """
    files: set[str] = set()
    links: set[str] = set()
    for entry in _entries(bundle):
        path = Path(entry.path).relative_to(bundle).as_posix()
        if path == MANIFEST_NAME:
            continue
        (files if entry.is_file(follow_symlinks=False) else links).add(path)
    return files, links


def _entries(folder: Path, left: int = MAX_PARTS) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if left > 1 and entry.is_dir(follow_symlinks=False):
                    yield from _entries(Path(entry.path), left - 1)
                else:
                    yield entry
    except OSError as error:
        raise VerificationError(
            f"{folder} cannot be read", details=(str(error.strerror or error),), hint="check its permissions"
        ) from error


def _find_fault(bundle: Path, record: FileRecord) -> str | None:
    path = bundle / record.path
    try:
        size = path.lstat().st_size
        if size != record.size:
            return f"{record.path} ({size} bytes instead of {record.size})"
        return None if digest_file(path) == record.sha256 else f"{record.path} (other content)"
    except OSError as error:
        return f"{record.path} (cannot be read: {error.strerror or error})"


def _find_archive_faults(bundle: Path, path: str, archives: Mapping[str, dict[str, int]]) -> list[str]:
    if not is_archive(path):
        return []
    try:
        found = list_entries(bundle / path)
    except ValueError as error:
        return [f"{path} ({error})"]
    return [f"{path} ({fault})" for fault in compare_entries(found, archives.get(path, found))]


def _malformed(bundle: Path, why: str) -> VerificationError:
    return VerificationError(
        f"{bundle / MANIFEST_NAME} is not a manifest of a bundle",
        details=(why,),
        hint="the bundle is damaged: copy it again, or build it again",
    )
