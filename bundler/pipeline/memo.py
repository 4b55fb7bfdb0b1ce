"""Remembers which inputs made the bundle that stands at a path, so that a rebuild with nothing changed writes nothing.

A bundle counts as unchanged when each of its files still has the size, times and inode that it had when we wrote
it; any other state means that it is written again. Bundles share their wheels, and each new link moves the change time
of such a file: one of which nothing else changed is read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import bundler
from bundler.model.codec import conforms, decode, encode
from bundler.model.digests import digest_file, digest_json
from bundler.model.errors import VerificationError
from bundler.model.manifest import MANIFEST_NAME, load_manifest_data
from bundler.pipeline.built import BuiltBundle
from bundler.pipeline.results import BuildSummary
from bundler.support.data import data_root
from bundler.support.remembered import kept_at, recall, remember


def bundle_key(bundle: BuiltBundle) -> str:
    """Digest of all that decides a bundle's bytes: configuration (it holds every file's digest), profile, format, the
    steps with their tools, and the code and templates that write it. Kept on this machine only, so code counts by its
    files' sizes and times.
    """
    request = bundle.prepared.request
    return digest_json(
        {
            "config": bundle.config,
            "profiles": [part.prepared.profile.model_dump(mode="json") for part in bundle.parts],
            "plan": bundle.prepared.plan,
            "steps": [{step: outcome.key for step, outcome in part.outcomes.items()} for part in bundle.parts],
            "pipeline": bundle.pipeline,
            "version": request.version,
            "package_name": request.package_name,
            "prove": request.prove,
            "measure": request.measure,
            "code": [_code_stamp(Path(bundler.__file__).parent), _code_stamp(data_root("templates"))],
        }
    )


def _code_stamp(root: Path) -> list[list[str | int]]:
    stamps: list[list[str | int]] = []
    for folder, _, names in sorted(os.walk(root)):
        if folder.endswith("__pycache__"):
            continue
        for name in sorted(names):
            stat = os.stat(os.path.join(folder, name))  # noqa: PTH116, PTH118 - some hundred files on the no-op path
            stamps.append([name, stat.st_size, stat.st_mtime_ns])
    return stamps


def recall_bundle(root: Path, bundle: Path, key: str) -> BuildSummary | None:
    """What `remember_bundle` kept for this bundle and key, if the bundle on disk is still the same."""
    memo = recall(kept_at(root, "bundles", _path(root, bundle).name), _about(bundle))
    if not isinstance(memo, dict) or memo.get("key") != key:
        return None
    try:
        present = _fingerprints(bundle)
        if memo.get("files") != present:
            if not _differ_in_links(bundle, memo.get("files"), present):
                return None
            with suppress(OSError):  # then they are read again the next time
                remember(_path(root, bundle), {**memo, "files": present}, _about(bundle))
    except (OSError, VerificationError):
        return None
    summary = memo.get("summary")
    return decode(BuildSummary, summary) if conforms(BuildSummary, summary) else None


def _differ_in_links(bundle: Path, known: Any, present: Mapping[str, list[int]]) -> bool:
    """Whether all that differs are change times of read-only files, whose content is that of the manifest."""
    if not isinstance(known, dict) or known.keys() != present.keys() or MANIFEST_NAME not in known:
        return False
    moved = [path for path in present if known[path] != present[path]]
    if MANIFEST_NAME in moved or any(_without_change(known[path]) != _without_change(present[path]) for path in moved):
        return False
    listed = {entry["path"]: entry["sha256"] for entry in load_manifest_data(bundle)["files"]}
    return all(
        not (bundle / path).lstat().st_mode & _WRITABLE and digest_file(bundle / path) == listed.get(path)
        for path in moved
    )


def _without_change(fingerprint: list[int]) -> list[int]:
    size, modified, _, inode = fingerprint
    return [size, modified, inode]


_WRITABLE: Final = 0o222


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
