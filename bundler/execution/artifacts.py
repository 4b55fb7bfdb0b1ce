"""The content-addressed store of artifacts on the local disk.

`artifacts/ab/<digest>/` has the real files (onnx refuses external data behind a link), and the `.json` beside it their
records and identities at the time of storing. Folders arrive by rename and are never written to afterwards.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from bundler.execution.identity import Identity, identity_of
from bundler.execution.scratch import Scratch
from bundler.model.artifacts import Artifact, FileRecord, record_folder
from bundler.model.codec import encode
from bundler.model.digests import digest_file, digest_json
from bundler.model.errors import StageError
from bundler.support.files import publish_folder, replace_whole
from bundler.support.remembered import BEHIND, recall, seal


class ArtifactStore:
    """Artifacts below one cache root."""

    def __init__(self, root: Path) -> None:
        self._root = root / "artifacts"
        behind = root / BEHIND
        self._behind = ArtifactStore(behind) if behind.is_dir() else None

    def folder(self, digest: str) -> Path:
        """The folder of an artifact's files, existing or not; that of the read-only cache if only that has them."""
        own = self._folder(digest)
        return self._behind.folder(digest) if self._behind is not None and not own.exists() else own

    def _folder(self, digest: str) -> Path:
        return self._root / digest[:2] / digest

    def find(self, digest: str, scratch: Scratch) -> Artifact | None:
        """The artifact, whole and unaltered, or None.

        Unchanged identities are trusted; any other file is read and hashed again. An altered artifact is removed.
        """
        found = self._find_own(digest, scratch)
        return self._behind.look_up(digest) if found is None and self._behind is not None else found

    def look_up(self, digest: str) -> Artifact | None:
        """As `find`, where nothing may be written or removed."""
        stored = self._read_manifest(digest)
        if stored is None:
            return None
        artifact, identities = stored
        present = _scan(self._folder(digest))
        return artifact if present == identities or self._is_intact(artifact, present) else None

    def _find_own(self, digest: str, scratch: Scratch) -> Artifact | None:
        stored = self._read_manifest(digest)
        if stored is None:
            return None
        artifact, identities = stored
        present = _scan(self._folder(digest))
        if present == identities:
            return artifact
        if self._is_intact(artifact, present):
            with contextlib.suppress(OSError):  # then it is read again the next time
                self._write_manifest(artifact, present, scratch)
            return artifact
        self.discard(digest, scratch)
        return None

    def put(self, folder: Path, scratch: Scratch) -> Artifact:
        """Take over the files in `folder`, a scratch folder, by renaming it. Raises `StageError`, `OSError`."""
        _refuse_links(folder)
        artifact = record_folder(folder)
        if self.find(artifact.digest, scratch) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            return artifact
        place = self._folder(artifact.digest)
        place.parent.mkdir(parents=True, exist_ok=True)
        self._move_in(folder, place, artifact, scratch)
        self._write_manifest(artifact, _scan(place), scratch)
        return artifact

    def discard(self, digest: str, scratch: Scratch) -> None:
        """Remove an artifact: one rename, then the deletion of its files."""
        self._manifest(digest).unlink(missing_ok=True)
        removed = scratch.new_path()
        try:
            self._folder(digest).rename(removed)
        except FileNotFoundError:
            return
        shutil.rmtree(removed, ignore_errors=True)

    def _move_in(self, folder: Path, place: Path, artifact: Artifact, scratch: Scratch) -> None:
        """Rename into place. A folder there is another process's equal result, or a leftover without a manifest."""

        def is_whole(place: Path) -> bool:
            return self._is_intact(artifact, _scan(place))

        publish_folder(folder, place, is_whole, lambda _: self.discard(artifact.digest, scratch))

    def _is_intact(self, artifact: Artifact, present: dict[str, Identity]) -> bool:
        if set(present) != {record.path for record in artifact.files}:
            return False
        place = self._folder(artifact.digest)
        return all(present[record.path][0] == record.size for record in artifact.files) and all(
            digest_file(place / record.path) == record.sha256 for record in artifact.files
        )

    def _manifest(self, digest: str) -> Path:
        return self._root / digest[:2] / f"{digest}.json"

    def _write_manifest(self, artifact: Artifact, identities: dict[str, Identity], scratch: Scratch) -> None:
        data = {"files": encode(artifact.files), "identities": identities}
        sealed = seal(data, _about(artifact.digest))
        replace_whole(self._manifest(artifact.digest), sealed, draft=scratch.new_path())

    def _read_manifest(self, digest: str) -> tuple[Artifact, dict[str, Identity]] | None:
        data = recall(self._manifest(digest), _about(digest))
        try:
            files = tuple(FileRecord(**item) for item in data["files"])
            identities = {path: (a, b, c, d) for path, (a, b, c, d) in data["identities"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        if digest_json(files) != digest:
            return None
        return Artifact(digest=digest, files=files), identities


def _about(digest: str) -> str:
    return f"artifact {digest}"


def _scan(folder: Path) -> dict[str, Identity]:
    """Identities of all files below `folder`, by relative path."""
    found: dict[str, Identity] = {}
    pending = [(str(folder), "")]
    while pending:
        here, prefix = pending.pop()
        try:
            entries = list(os.scandir(here))
        except FileNotFoundError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append((entry.path, f"{prefix}{entry.name}/"))
            else:
                found[prefix + entry.name] = identity_of(entry.stat(follow_symlinks=False))
    return found


def _refuse_links(folder: Path) -> None:
    """A symbolic link would point out of the store; a hard link would let a later write alter what we hold."""
    for path in folder.rglob("*"):
        if path.is_symlink() or (path.is_file() and path.stat().st_nlink > 1):
            name = path.relative_to(folder).as_posix()
            raise StageError(
                f"the stage left a link, {name!r}, where a real file is needed",
                hint="a stage must copy the files of its result; report this to the author of the stage",
            )
