"""Remembers which inputs made the bundle that stands at a path, so that a rebuild with nothing changed writes nothing.

A bundle counts as unchanged when each of its files still has the size, times and inode that it had when we wrote
it; any other state means that it is written again.
"""

from __future__ import annotations

import os
from pathlib import Path

from bundler.model.codec import conforms, decode, encode
from bundler.model.digests import digest_json
from bundler.pipeline.results import BuildSummary
from bundler.support.remembered import kept_at, recall, remember


def recall_bundle(root: Path, bundle: Path, key: str) -> BuildSummary | None:
    """What `remember_bundle` kept for this bundle and key, if the bundle on disk is still the same."""
    memo = recall(kept_at(root, "bundles", _path(root, bundle).name), _about(bundle))
    if not isinstance(memo, dict) or memo.get("key") != key:
        return None
    try:
        if memo.get("files") != _fingerprints(bundle):
            return None
    except OSError:
        return None
    summary = memo.get("summary")
    return decode(BuildSummary, summary) if conforms(BuildSummary, summary) else None


def remember_bundle(root: Path, bundle: Path, key: str, summary: BuildSummary) -> None:
    """Keep the fingerprints of the bundle's files with `summary`."""
    memo = {"key": key, "files": _fingerprints(bundle), "summary": encode(summary)}
    remember(_path(root, bundle), memo, _about(bundle))


def _path(root: Path, bundle: Path) -> Path:
    return root / "bundles" / f"{digest_json(str(bundle.absolute()))}.json"


def _about(bundle: Path) -> str:
    return f"bundle {bundle.absolute()}"


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
