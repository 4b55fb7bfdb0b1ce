"""Action records: the result of a stage for a key. Written last, so everything that a record names is stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from bundler.execution.scratch import Scratch
from bundler.model.artifacts import Artifact, make_artifact
from bundler.model.codec import conforms, decode
from bundler.model.digests import digest_json
from bundler.model.stage import Note
from bundler.support.files import replace_whole
from bundler.support.remembered import BEHIND, mark_used, read_bounded, seal, unseal

_DIGEST = re.compile(r"[0-9a-f]{64}")


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
        self._cache = root

    def path(self, key: str) -> Path:
        """Where the record of `key` is written."""
        return self._cache.joinpath(*_place(key))

    def find(self, key: str) -> ActionRecord | None:
        """The record, or None when it is missing or altered. Marks it as used, for `bundler cache trim`."""
        for path in (self.path(key), self._cache.joinpath(BEHIND, *_place(key))):
            try:
                record = parse_record(key, read_bounded(path))
            except OSError:
                continue
            if record is not None:
                mark_used(path)
                return record
        return None

    def put(self, key: str, record: ActionRecord, scratch: Scratch) -> bytes:
        """Write the record; returns its bytes. Raises `OSError`."""
        data = render_record(record)
        replace_whole(self.path(key), data, draft=scratch.new_path())
        return data


def _place(key: str) -> tuple[str, str, str]:
    return ("records", key[:2], f"{key}.json")


def render_record(record: ActionRecord) -> bytes:
    """The record as it is stored, below the checksum that binds it to its key."""
    return seal(record, _about(digest_json(record.ingredients)))


def parse_record(key: str, data: bytes) -> ActionRecord | None:
    """The record of `key` from its bytes, or None when they are not what was written for that key. Never raises."""
    value = unseal(data, _about(key))
    if value is None or not conforms(ActionRecord, value):
        return None
    record = decode(ActionRecord, value)
    if digest_json(record.ingredients) != key or not _is_sound(record):
        return None
    return record


def _about(key: str) -> str:
    return f"record {key}"


def _is_sound(record: ActionRecord) -> bool:
    """Records may come from a shared cache: the artifact is the one of its digest, whose paths stay in its folder."""
    if record.artifact is None:
        return record.entry is None
    files = record.artifact.files
    return (
        make_artifact(files).digest == record.artifact.digest
        and all(is_safe_path(item.path) and item.size >= 0 and _DIGEST.fullmatch(item.sha256) for item in files)
        and record.entry in {item.path for item in files}
    )


def is_safe_path(path: str) -> bool:
    """Whether `path` is relative, has no way up, and means the same on every system."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and not any(c in path for c in "\\:\0")
