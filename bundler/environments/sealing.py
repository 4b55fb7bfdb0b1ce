"""Checks an installed folder for changes: each file by size and time, and by digest where these changed.

Where tools work, byte code and new files do not count: interpreters write them at any time. A folder that bundles are
linked to is `closed`: there every file counts, because byte code may run without a look at its source, and a new module
may be found before another.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bundler.model.digests import digest_file
from bundler.support.remembered import recall, remember

LISTING = "bundler-files.json"
_ABOUT = "installed files"
_BYTE_CODE = "__pycache__"

Seen = tuple[int, int]
"""Size in bytes and modification time in ns. The change time changes with every hard link, which verifications make."""


def seal_folder(folder: Path, *, closed: bool = False) -> None:
    """Record every file of a folder that was just installed. Raises `OSError`."""
    seen = dict(_scan(folder, byte_code=closed))
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:  # hashing releases the interpreter's lock
        digests = pool.map(lambda name: _digest(folder / name), seen)
    listing = {name: [*seen[name], digest] for name, digest in zip(seen, digests, strict=True)}
    remember(folder / LISTING, listing, _ABOUT)


def find_altered(folder: Path, *, closed: bool = False) -> str | None:
    """A file that is missing or has other contents than `seal_folder` saw, or, in a `closed` folder, is new, by its
    path in the folder; None when there is none. In a folder that was never sealed, or whose list was altered, it is
    the list.
    """
    listing = recall(folder / LISTING, _ABOUT)
    if not isinstance(listing, dict):
        return LISTING
    seen = dict(_scan(folder, byte_code=closed))
    if closed and (added := seen.keys() - listing.keys()):
        return min(added)
    moved = False
    for name, (size, time, digest) in listing.items():
        if seen.get(name) == (size, time):
            continue
        if name not in seen or seen[name][0] != size or _digest(folder / name) != digest:
            return str(name)
        moved = True
    if moved:  # copied or unpacked with other times: looked at once
        renewed = {name: [*seen[name], digest] for name, (_, _, digest) in listing.items()}
        with contextlib.suppress(OSError):
            remember(folder / LISTING, renewed, _ABOUT)
    return None


def _scan(folder: Path, *, byte_code: bool) -> Iterator[tuple[str, Seen]]:
    pending = [("", str(folder))]
    while pending:
        prefix, place = pending.pop()
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if byte_code or entry.name != _BYTE_CODE:
                        pending.append((f"{prefix}{entry.name}/", entry.path))
                elif prefix or entry.name != LISTING:
                    status = entry.stat(follow_symlinks=False)
                    yield prefix + entry.name, (status.st_size, status.st_mtime_ns)


def _digest(path: Path) -> str:
    """Of a link where it leads, of a file its contents."""
    try:
        return f"-> {path.readlink()}" if path.is_symlink() else digest_file(path)
    except OSError as error:
        return f"{type(error).__name__}"
