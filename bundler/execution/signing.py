"""Signs and verifies the records of a shared cache. Readers trust only records signed with the team's key.

HMAC-SHA256 over the key of the step and the whole record: ingredients, facts, notes, and the digests of the artifact's
files. So no part of a record can be changed, and no record can replace another.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from pathlib import Path

from bundler.model.errors import UsageError
from bundler.model.paths import real_path, user_path
from bundler.support.remembered import read_bounded

KEY = "BUNDLER_CACHE_KEY"
KEY_FILE = "BUNDLER_CACHE_KEY_FILE"
MIN_KEY_BYTES = 16
MAX_KEY_BYTES = 1 << 16
_SCHEME = b"bundler-record-1"
_HINT = f"a key is at least {MIN_KEY_BYTES} random bytes: python -c 'import secrets; print(secrets.token_hex(32))'"


def read_key(environ: Mapping[str, str] = os.environ) -> bytes | None:
    """The key in BUNDLER_CACHE_KEY, or in the file that BUNDLER_CACHE_KEY_FILE names; None where neither is set.

    White space around it does not count. Raises `UsageError` for a file that cannot be read, and for a short key.
    """
    text, file = environ.get(KEY), environ.get(KEY_FILE)
    if text:
        key, where = text.encode("utf-8", "surrogateescape"), KEY
    elif file:
        key, where = _read_file(user_path(file)), file
    else:
        return None
    key = key.strip()
    if len(key) < MIN_KEY_BYTES:
        raise UsageError(f"the key of the shared cache in {where} is too short ({len(key)} bytes)", hint=_HINT)
    return key


def sign(key: bytes, step: str, data: bytes) -> bytes:
    """`data`, the record of the step key `step`, below its signature."""
    return _signature(key, step, data) + b"\n" + data


def unsign(key: bytes, step: str, signed: bytes) -> bytes | None:
    """The record, or None when it is not signed with `key` for that step."""
    signature, _, data = signed.partition(b"\n")
    return data if hmac.compare_digest(signature, _signature(key, step, data)) else None


def _signature(key: bytes, step: str, data: bytes) -> bytes:
    return hmac.digest(key, b"\n".join((_SCHEME, step.encode(), data)), "sha256").hex().encode()


def _read_file(path: Path) -> bytes:
    try:
        return read_bounded(real_path(path), MAX_KEY_BYTES)
    except OSError as error:
        raise UsageError(f"cannot read the key of the shared cache in {path}: {error.strerror or error}") from error
