"""SHA-256 over bytes, files and canonical JSON. All digests are computed here."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from bundler.model.codec import encode


def digest_file(path: Path) -> str:
    """Lower-case hexadecimal SHA-256 of a file's bytes, read in pieces (a model may be several GB)."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no spaces and no NaN: equal values give equal text."""
    return json.dumps(encode(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_json(value: Any) -> str:
    """SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()
