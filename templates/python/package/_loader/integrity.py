"""Checks the SHA-256 of the bundle's files: in full when a file is new or changed, otherwise by its identity.

The identity (size, times, device, inode) of a checked file is kept in the user's cache folder. After a copy, a change
or a new installation the identity differs, and the file is checked in full again. Set `BUNDLER_ALWAYS_CHECK=1`, or open
the model with `always_check=True`, to check in full each time.

Modules that only a full check needs are imported there, to keep other starts fast.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
import zlib
from typing import TYPE_CHECKING, Any

from .errors import REBUILD, IntegrityError

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Thread

SETTLED_NS = 2_000_000_000
"""A file that changed more recently (2 s, the coarsest time stamps of a file system in use: FAT) could change again
with the same time stamp, so it is not remembered yet."""

_WORTH_A_THREAD = 256 * 1024
"""Bytes; below this size, hashing is faster than starting a thread."""

_MOST_THREADS = 4


class File:
    """One file of the payload: its path relative to the payload folder, size in bytes and SHA-256."""

    __slots__ = ("path", "sha256", "size")

    def __init__(self, data: dict[str, Any]) -> None:
        self.path: str = data["path"]
        self.size: int = data["size"]
        self.sha256: str = data["sha256"]


class Memory:
    """The earlier checks of one payload folder. A missing or damaged record counts as none.

    `place` is the prefix of the paths of what is stored for this payload, None where nothing can be stored;
    `refusal` says why if another user could have written there. With `always` earlier checks are ignored, so that all
    files are checked in full.
    """

    def __init__(self, payload: str, *, always: bool = False) -> None:
        self.payload = payload
        self.place, self.refusal = _find_place(payload)
        self._path = None if self.place is None else f"{self.place}.json"
        self._known = {} if always else _recall(self._path)
        self._fresh: dict[str, str] = {}

    def knows(self, path: str, sha256: str) -> bool:
        """Whether the file is the one that was checked. Raises `IntegrityError` when it is gone."""
        known = self._known.get(path)
        return known is not None and known == _identify(os.path.join(self.payload, path), sha256)[0]

    def note(self, path: str, sha256: str, before: str) -> None:
        """Record that the file matches; `before` is its identity before it was read."""
        identity, changed_ns = _identify(os.path.join(self.payload, path), sha256)
        if identity == before and time.time_ns() - changed_ns > SETTLED_NS:
            self._fresh[path] = identity

    def save(self) -> None:
        """Write new records atomically. Where they cannot be written, the next start checks again."""
        if self._path is None or not self._fresh:
            return
        draft = f"{self._path}.{os.getpid()}"
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            with open(draft, "w", encoding="utf-8") as stream:
                json.dump({**_drop_gone(self._known), **self._fresh}, stream)
            os.replace(draft, self._path)
        except OSError:
            _discard(draft)


class Check:
    """A running check. No output may be returned before `finish` has returned."""

    def __init__(self, memory: Memory, files: list[File]) -> None:
        self._memory = memory
        self._errors: list[BaseException] = []
        unknown = [file for file in files if not memory.knows(file.path, file.sha256)]
        unknown.sort(key=lambda file: file.size, reverse=True)
        self._queue = iter(unknown)
        self._threads = self._start(sum(file.size for file in unknown), len(unknown))

    def finish(self) -> None:
        """Wait for the check. Raises `IntegrityError` when a file is missing or does not match its checksum."""
        self._work()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _start(self, size: int, count: int) -> list[Thread]:
        if size < _WORTH_A_THREAD:
            return []
        from threading import Thread

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
        path = os.path.join(self._memory.payload, file.path)
        before, _ = _identify(path, file.sha256)
        size = os.stat(path).st_size
        if size != file.size:
            raise _altered(path, f"it has {size} bytes, not {file.size}")
        found = hash_file(path)
        if found != file.sha256:
            raise _altered(path, f"SHA-256 is {found}, not {file.sha256}")
        self._memory.note(file.path, file.sha256, before)


def read_pinned(memory: Memory, name: str, sha256: str) -> bytes:
    """The bytes of a small file. Raises `IntegrityError` when it is missing or altered."""
    path = os.path.join(memory.payload, name)
    known = memory.knows(name, sha256)
    before, _ = _identify(path, sha256)
    try:
        with open(path, "rb", buffering=0) as stream:
            text = stream.readall()
    except OSError as error:
        raise IntegrityError(f"cannot read {path}", why=str(error), hint=REBUILD) from error
    if not known:
        import hashlib

        found = hashlib.sha256(text).hexdigest()
        if found != sha256:
            raise _altered(path, f"SHA-256 is {found}, not {sha256}")
        memory.note(name, sha256, before)
    return text


def always_check_wanted() -> bool:
    """Whether the environment asks for a full check each time."""
    return os.environ.get("BUNDLER_ALWAYS_CHECK", "") not in ("", "0")


def _altered(path: str, why: str) -> IntegrityError:
    return IntegrityError(f"{path} does not match its checksum", why=why, hint=REBUILD)


def _identify(path: str, sha256: str) -> tuple[str, int]:
    """The identity of a file with its expected digest, and the time of its last change (ns since 1970)."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise IntegrityError(f"cannot read {path}", why=str(error), hint=REBUILD) from error
    identity = f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_dev} {found.st_ino} {sha256}"
    return identity, max(found.st_mtime_ns, found.st_ctime_ns)


_WINDOW = 64 << 20
"""Bytes of a file that are mapped at a time; a multiple of every system's granularity."""


def hash_file(path: str) -> str:
    """SHA-256 in hexadecimal. Raises `IntegrityError` when the file cannot be read.

    A part of the file is mapped and hashed in one call, without the interpreter's lock, while the session is created.
    """
    import hashlib
    import mmap

    digest = hashlib.sha256()
    try:
        with open(path, "rb", buffering=0) as stream:
            size = os.fstat(stream.fileno()).st_size
            for start in range(0, size, _WINDOW):
                length = min(_WINDOW, size - start)
                with mmap.mmap(stream.fileno(), length, access=mmap.ACCESS_READ, offset=start) as mapping:
                    digest.update(mapping)
    except (OSError, ValueError) as error:  # the latter where the file became shorter meanwhile
        raise IntegrityError(f"cannot read {path}", why=str(error), hint=REBUILD) from error
    return digest.hexdigest()


def find_cache() -> str | None:
    """The user's cache folder for this, or None when there is none."""
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        root = os.path.expanduser("~/Library/Caches")
    else:
        root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(root, "bundler-loader") if os.path.isabs(root) else None


def _find_place(payload: str) -> tuple[str | None, str]:
    """A collision of two folders would only cause another check: a checksum is enough."""
    folder = find_cache()
    if folder is None:
        return None, ""
    fault = find_stranger(folder)
    if fault:
        return None, f"checks are not remembered for the next start: {fault}"
    place = os.path.realpath(payload).encode("utf-8", "surrogateescape")
    return os.path.join(folder, f"{zlib.crc32(place):08x}-{len(place)}"), ""


def leads_out(path: str) -> bool:
    """Whether a path of the bundle's own files could lead out of their folder, on any system."""
    parts = path.replace("\\", "/").split("/")
    return not parts[0] or ":" in parts[0] or ".." in parts or os.path.isabs(path)


def find_stranger(folder: str) -> str:
    """Why another user could have written into `folder`; nothing where it belongs to this user or the administrator
    alone, or does not exist yet. On Windows the folder's access list protects it.
    """
    if sys.platform == "win32":
        return ""
    return _judge(os.path.dirname(folder), os.stat, is_parent=True) or _judge(folder, os.lstat, is_parent=False)


def _judge(folder: str, look: Callable[[str], os.stat_result], *, is_parent: bool) -> str:
    """In a parent with the sticky bit no other user may rename our files."""
    try:
        found = look(folder)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{folder} cannot be looked at ({error})"
    if stat.S_ISLNK(found.st_mode):
        return f"{folder} is a link"
    if found.st_uid not in (0, os.geteuid()):
        return f"{folder} belongs to another user"
    writable = found.st_mode & (stat.S_IWOTH if is_parent else stat.S_IWOTH | stat.S_IWGRP)
    if writable and not (is_parent and found.st_mode & stat.S_ISVTX):
        return f"others may write to {folder} (chmod go-w makes it yours alone)"
    return ""


def _recall(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        with open(path, "rb", buffering=0) as stream:
            data = json.loads(stream.readall())
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _drop_gone(known: dict[str, Any]) -> dict[str, Any]:
    """Without files outside the payload that no longer exist, such as old copies for the device."""
    return {path: identity for path, identity in known.items() if not os.path.isabs(path) or os.path.exists(path)}


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
