"""Remembers which inputs made the bundle that stands at a path, so that a rebuild with nothing changed writes nothing.

A bundle counts as unchanged when each of its files still has the size, times and inode that it had when we wrote
it; any other state means that it is written again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bundler.model.digests import digest_json
from bundler.model.errors import Json


def recall_bundle(root: Path, bundle: Path, key: str) -> Mapping[str, Any] | None:
    """What `remember_bundle` kept for this bundle and key, if the bundle on disk is still the same."""
    try:
        memo = json.loads(_path(root, bundle).read_text(encoding="utf-8"))
        if memo["key"] != key or memo["files"] != _fingerprints(bundle):
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    summary: Mapping[str, Any] = memo["summary"]
    return summary


def remember_bundle(root: Path, bundle: Path, key: str, summary: Mapping[str, Json]) -> None:
    """Keep the fingerprints of the bundle's files with `summary`."""
    path = _path(root, bundle)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"key": key, "files": _fingerprints(bundle), "summary": dict(summary)})
    partial = path.with_suffix(f".{os.getpid()}.tmp")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _path(root: Path, bundle: Path) -> Path:
    return root / "bundles" / f"{digest_json(str(bundle.absolute()))}.json"


def _fingerprints(bundle: Path) -> dict[str, list[int]]:
    """Size, modification and change time (ns) and inode of every file and link below `bundle`."""
    if not bundle.is_dir():
        raise FileNotFoundError(bundle)
    found = {}
    for folder, _, names in os.walk(bundle):
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118 - twice as fast as pathlib here, on the no-op path
            stat = os.lstat(path)
            found[os.path.relpath(path, bundle)] = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
    return found
