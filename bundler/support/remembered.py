"""Values that are kept between runs, each with a checksum over the value and its subject.

A file that was altered, truncated, moved or made endless counts as missing. The checksum protects against accidents,
not against an attacker: records of a cache that others can write to are signed, too (`bundler.execution.signing`).
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
"""No kept value is larger; a larger file is not read."""

BEHIND = ".bundler-behind"
"""In the root of a temporary cache: the link to the read-only cache behind it."""


def seal(value: Any, about: str) -> bytes:
    """`value` as JSON after its checksum. `about` is the subject (`source /path`, `record KEY`)."""
    return seal_bytes(canonical_json(value).encode("utf-8", "surrogatepass"), about)


def unseal(data: bytes, about: str) -> Any:
    """The value; None if the bytes are not those that `seal` made for the same subject. Never raises."""
    content = unseal_bytes(data, about)
    if content is None:
        return None
    try:
        return parse_json(content.decode("utf-8", "surrogatepass"))
    except ValueError:  # only with a forged checksum
        return None


def seal_bytes(content: bytes, about: str) -> bytes:
    """`content` after its checksum, as `seal` does."""
    return _checksum(content, about) + b"\n" + content


def unseal_bytes(data: bytes, about: str) -> bytes | None:
    """The content; None if the bytes are not those that `seal_bytes` made for the same subject."""
    check, _, content = data.partition(b"\n")
    return content if check == _checksum(content, about) else None


def recall(path: Path, about: str) -> Any:
    """The value that `remember` kept at `path` for this subject; None if it is missing, altered or no regular file."""
    try:
        return unseal(read_bounded(path), about)
    except OSError:
        return None


def kept_at(root: Path, *parts: str) -> Path:
    """The path of a file in the cache at `root`; that in the read-only cache behind it if only that has the file."""
    own, behind = root.joinpath(*parts), root.joinpath(BEHIND, *parts)
    return behind if not own.exists() and behind.exists() else own


def remember(path: Path, value: Any, about: str) -> None:
    """Keep `value` at `path`, atomically. Raises `OSError`."""
    keep(path, seal(value, about))


def keep(path: Path, data: bytes) -> None:
    """Write a file of a cache, atomically; never in a read-only cache. Raises `OSError`."""
    if BEHIND in path.parts:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
    replace_whole(path, data)


def mark_used(path: Path) -> None:
    """Mark the file as used now, for `bundler cache trim`; never in a read-only cache."""
    if BEHIND not in path.parts:
        with contextlib.suppress(OSError):
            os.utime(path)


def read_bounded(path: Path, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file of at most `limit` bytes. Raises `OSError`, also for a link, a device or a pipe."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(f"{path} is not a regular file")
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise OSError(f"{path} is larger than {limit} bytes")
    return data


def _checksum(content: bytes, about: str) -> bytes:
    digest = hashlib.sha256(about.encode("utf-8", "surrogateescape") + b"\0")
    digest.update(content)
    return digest.hexdigest().encode()
