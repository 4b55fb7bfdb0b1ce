"""Action records: what a stage gave for a key. Written last, so a record means that everything it names was stored."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from bundler.execution.scratch import Scratch, write_atomically
from bundler.model.artifacts import Artifact
from bundler.model.codec import decode
from bundler.model.digests import canonical_json, digest_json
from bundler.model.stage import Note


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRecord:
    """A successful run. `artifact` and `entry` are None when nothing was written; `seconds` is what the run took."""

    stage: str
    ingredients: Mapping[str, Any]
    artifact: Artifact | None
    entry: str | None
    facts: Mapping[str, Any]
    notes: tuple[Note, ...]
    seconds: float


class RecordStore:
    """Records below one cache root, by key."""

    def __init__(self, root: Path) -> None:
        self._root = root / "records"

    def path(self, key: str) -> Path:
        """Where the record of `key` stands."""
        return self._root / key[:2] / f"{key}.json"

    def find(self, key: str) -> ActionRecord | None:
        """The record, or None when it is missing or altered. Marks it as used, for `bundler cache trim`."""
        path = self.path(key)
        try:
            record = parse_record(key, path.read_bytes())
        except OSError:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return record

    def has(self, key: str) -> bool:
        """Whether there is a whole record of `key`; does not mark it as used."""
        try:
            return parse_record(key, self.path(key).read_bytes()) is not None
        except OSError:
            return False

    def put(self, key: str, record: ActionRecord, scratch: Scratch) -> bytes:
        """Write the record; returns its bytes. Raises `OSError`."""
        data = render_record(record)
        write_atomically(self.path(key), data, scratch.new_path())
        return data


def render_record(record: ActionRecord) -> bytes:
    """The record as it is stored: the digest of the text on the first line, then the text."""
    text = canonical_json(record).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text + b"\n"


def parse_record(key: str, data: bytes) -> ActionRecord | None:
    """The record of `key` from its bytes, or None when they are not what was written for that key."""
    check, _, text = data.partition(b"\n")
    text = text.removesuffix(b"\n")
    if hashlib.sha256(text).hexdigest().encode() != check:
        return None
    try:
        record = decode(ActionRecord, json.loads(text.decode("utf-8", "surrogatepass")))
    except (ValueError, KeyError, TypeError):
        return None
    if digest_json(record.ingredients) != key or not _has_safe_paths(record):
        return None
    return record


def _has_safe_paths(record: ActionRecord) -> bool:
    """Records may come from a shared cache: their paths must stay inside the artifact's folder."""
    if record.artifact is None:
        return record.entry is None
    return all(is_safe_path(item.path) for item in record.artifact.files) and (
        record.entry is None or record.entry in {item.path for item in record.artifact.files}
    )


def is_safe_path(path: str) -> bool:
    """Whether `path` is relative, has no way up, and means the same on every system."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and not any(c in path for c in "\\:\0")
