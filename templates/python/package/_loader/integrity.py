"""The files are those that were built and proven: SHA-256 in full when a file is new or changed, remembered after.

What was checked is remembered by a file's identity (size, times, inode) in the user's cache folder. A copy, a change
or a new installation has another identity and is checked in full again. Set `BUNDLER_ALWAYS_CHECK=1`, or open the
model with `always_check=True`, to check in full each time.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import sys
import time
from threading import Thread

from .config import REBUILD, File
from .errors import IntegrityError

SETTLED_NS = 2_000_000_000
"""A file that changed less than this long ago (2 s, the coarsest clock of a file system in use: FAT) could change
again without a new time stamp, so it is not remembered yet."""

_WORTH_A_THREAD = 256 * 1024
"""Bytes; below, hashing takes less time than a thread takes to start."""

_MOST_THREADS = 4


class Check:
    """A check under way. Nothing may be answered before `finish` has returned."""

    def __init__(self, payload: str, files: list[File], *, always: bool = False) -> None:
        self._payload = payload
        self._errors: list[BaseException] = []
        self._memory = {} if always else _recall(payload)
        self._fresh: dict[str, str] = {}
        unknown = [file for file in files if not self._is_remembered(file)]
        unknown.sort(key=lambda file: file.size, reverse=True)
        self._queue = iter(unknown)
        self._threads = self._start(sum(file.size for file in unknown), len(unknown))

    def finish(self) -> None:
        """Wait for the check. Raises `IntegrityError` when a file is missing or is not the one that was built."""
        self._work()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]
        if self._fresh:
            _remember(self._payload, {**self._memory, **self._fresh})
            self._fresh = {}

    def _is_remembered(self, file: File) -> bool:
        known = self._memory.get(file.path)
        return known is not None and known == _identify(self._payload, file)[0]

    def _start(self, size: int, count: int) -> list[Thread]:
        if size < _WORTH_A_THREAD:
            return []
        threads = [Thread(target=self._work, daemon=True) for _ in range(min(count, _MOST_THREADS))]
        for thread in threads:
            thread.start()
        return threads

    def _work(self) -> None:
        for file in self._queue:
            try:
                self._check(file)
            except BaseException as error:  # noqa: BLE001 (it crosses a thread and is raised again in `finish`)
                self._errors.append(error)

    def _check(self, file: File) -> None:
        identity, changed_ns = _identify(self._payload, file)
        path = os.path.join(self._payload, file.path)
        found = _hash(path, file.size)
        if found != file.sha256:
            raise _altered(path, f"SHA-256 is {found}, not {file.sha256}")
        settled = time.time_ns() - changed_ns > SETTLED_NS
        if settled and _identify(self._payload, file)[0] == identity:
            self._fresh[file.path] = identity


def always_check_wanted() -> bool:
    """Whether the environment asks for a full check each time."""
    return os.environ.get("BUNDLER_ALWAYS_CHECK", "") not in ("", "0")


def _altered(path: str, why: str) -> IntegrityError:
    return IntegrityError(f"{path} is not the file that was built", why=why, hint=REBUILD)


def _identify(payload: str, file: File) -> tuple[str, int]:
    """The identity of a file with the digest that it should have, and when it changed last (ns since 1970)."""
    path = os.path.join(payload, file.path)
    try:
        stat = os.stat(path)
    except OSError as error:
        raise IntegrityError(f"cannot read {path}", why=str(error), hint=REBUILD) from error
    if stat.st_size != file.size:
        raise _altered(path, f"it has {stat.st_size} bytes, not {file.size}")
    identity = f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_dev} {stat.st_ino} {file.sha256}"
    return identity, max(stat.st_mtime_ns, stat.st_ctime_ns)


def _hash(path: str, size: int) -> str:
    """One call over the mapped file: it runs without the interpreter's lock while the session opens beside it."""
    try:
        with open(path, "rb", buffering=0) as stream:
            if size == 0:
                return hashlib.sha256(b"").hexdigest()
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
                return hashlib.sha256(mapping).hexdigest()
    except OSError as error:
        raise IntegrityError(f"cannot read {path}", why=str(error), hint=REBUILD) from error


def cache_folder() -> str | None:
    """The user's cache folder for this, or None when there is none."""
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        root = os.path.expanduser("~/Library/Caches")
    else:
        root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(root, "bundler-loader") if os.path.isabs(root) else None


def _memory_path(payload: str) -> str | None:
    folder = cache_folder()
    if folder is None:
        return None
    name = hashlib.sha256(os.path.realpath(payload).encode("utf-8", "surrogateescape")).hexdigest()
    return os.path.join(folder, f"{name[:32]}.json")


def _recall(payload: str) -> dict[str, str]:
    """What was checked before, by path. A missing or damaged memory is no memory."""
    path = _memory_path(payload)
    if path is None:
        return {}
    try:
        with open(path, "rb", buffering=0) as stream:
            data = json.loads(stream.read())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _remember(payload: str, memory: dict[str, str]) -> None:
    """Write the memory in one step. Where it cannot be written, the next opening checks again."""
    path = _memory_path(payload)
    if path is None:
        return
    draft = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(draft, "w", encoding="utf-8") as stream:
            json.dump(memory, stream)
        os.replace(draft, path)
    except OSError:
        _discard(draft)


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
