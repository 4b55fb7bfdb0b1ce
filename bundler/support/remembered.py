"""What is remembered between runs: text below a checksum, which binds it to the question that it answers too.

A memory that was altered, cut, moved to another's place or made endless is no memory: whoever asks finds out again.
The checksum guards against accidents and careless hands, not against someone who may write to the cache: what comes
from a cache that others can write is authenticated besides (`bundler.execution.signing`).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import Any

from bundler.model.codec import parse_json
from bundler.model.digests import canonical_json
from bundler.support.files import replace_whole

MAX_BYTES = 64 << 20
"""More than anything that is remembered takes; a larger file is not read."""

BEHIND = ".bundler-behind"
"""In the root of a cache that lies over a read-only one: the link to that."""


def seal(value: Any, about: str) -> bytes:
    """`value` as JSON below its checksum. `about` says what it answers (`source /path`, `record KEY`)."""
    return seal_bytes(canonical_json(value).encode("utf-8", "surrogatepass"), about)


def unseal(data: bytes, about: str) -> Any:
    """The value, or None when these are not the bytes that `seal` made about the same. Never raises."""
    content = unseal_bytes(data, about)
    if content is None:
        return None
    try:
        return parse_json(content.decode("utf-8", "surrogatepass"))
    except ValueError:  # only who computes checksums gets here
        return None


def seal_bytes(content: bytes, about: str) -> bytes:
    """`content` below its checksum, as `seal` does."""
    return _checksum(content, about) + b"\n" + content


def unseal_bytes(data: bytes, about: str) -> bytes | None:
    """What `seal_bytes` was given, or None when the bytes are not what it made about the same."""
    check, _, content = data.partition(b"\n")
    return content if check == _checksum(content, about) else None


def recall(path: Path, about: str) -> Any:
    """What `remember` kept at `path` about the same; None when it is missing, altered or no plain file."""
    try:
        return unseal(read_bounded(path), about)
    except OSError:
        return None


def kept_at(root: Path, *parts: str) -> Path:
    """Where something of the cache at `root` is read, and written when it is not there yet: behind it, when a read-only
    cache there alone has it. Nothing is ever written there.
    """
    own, behind = root.joinpath(*parts), root.joinpath(BEHIND, *parts)
    return behind if not own.exists() and behind.exists() else own


def remember(path: Path, value: Any, about: str) -> None:
    """Keep `value` at `path`, whole or not at all. Raises `OSError`."""
    keep(path, seal(value, about))


def keep(path: Path, data: bytes) -> None:
    """Write a file of a cache, whole or not at all; never one behind it. Raises `OSError`."""
    if BEHIND in path.parts:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
    replace_whole(path, data)


def mark_used(path: Path) -> None:
    """Used now: the last that trimming the cache removes. What is behind a passing cache is left as it is."""
    if BEHIND not in path.parts:
        with contextlib.suppress(OSError):
            os.utime(path)


def read_bounded(path: Path, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a plain file of at most `limit` bytes. Raises `OSError`, for a link, a device or a pipe too."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(f"{path} is no plain file")
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise OSError(f"{path} is larger than {limit} bytes")
    return data


def _checksum(content: bytes, about: str) -> bytes:
    digest = hashlib.sha256(about.encode("utf-8", "surrogateescape") + b"\0")
    digest.update(content)
    return digest.hexdigest().encode()
