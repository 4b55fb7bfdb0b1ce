"""The user's own files: hashed in place once for each file identity, never copied."""

from __future__ import annotations

import contextlib
import hashlib
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bundler.execution.identity import Identity, identify, identity_of, is_settled
from bundler.model.artifacts import Artifact, FileRecord, make_artifact
from bundler.model.digests import digest_file
from bundler.model.errors import StageError, UsageError
from bundler.model.results import StepOutcome
from bundler.support.files import replace_whole
from bundler.support.reads import announce_look
from bundler.support.remembered import kept_at, recall, seal

if TYPE_CHECKING:
    from bundler.execution.cache import Cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file (or a folder) that no step makes. `digest` is over the names and contents of `files`, whose paths are
    relative to the folder that holds `path` (or to `path` itself, when it is a folder). `identities` are those of the
    user's own files, in the order of `files`, when they were hashed: steps read them in place, so they must not change
    until the steps end.
    """

    path: Path
    digest: str
    files: tuple[FileRecord, ...] = ()
    identities: tuple[tuple[Path, Identity], ...] = ()

    @property
    def artifact(self) -> Artifact:
        """The source seen as an artifact, for a stage that passes it through."""
        return Artifact(digest=self.digest, files=self.files)

    @property
    def size(self) -> int:
        """Bytes in all files together."""
        return sum(record.size for record in self.files)


def source_of(outcome: StepOutcome) -> Source:
    """What a step made, as a source of another plan. Raises `StageError` when it made nothing."""
    if outcome.artifact is None:
        raise StageError(f"step {outcome.step} made no artifact")
    return Source(path=outcome.path, digest=outcome.artifact.digest, files=outcome.artifact.files)


def digest_source(path: Path, extra_files: Iterable[Path], cache: Cache) -> Source:
    """Hash `path` and the files that belong to it (a model's external data, below its folder).

    Raises `UsageError` when a file cannot be read.
    """
    path = path.absolute()
    base = path if path.is_dir() else path.parent
    paths = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path, *extra_files]
    try:
        found = [(item, *_record(item, base, cache)) for item in dict.fromkeys(item.absolute() for item in paths)]
    except OSError as error:
        raise UsageError(
            f"cannot read {error.filename or path}: {error.strerror}", hint="check the path and its permissions"
        ) from error
    found.sort(key=lambda item: item[1].path)  # as the artifact's files are
    artifact = make_artifact(tuple(record for _, record, _ in found))
    identities = tuple((item, identity) for item, _, identity in found)
    return Source(path=path, digest=artifact.digest, files=artifact.files, identities=identities)


def check_unchanged(sources: Iterable[Source]) -> None:
    """Raises `UsageError` when a file changed after it was hashed: what a step made of it belongs to other bytes."""
    for source in sources:
        for (path, before), record in zip(source.identities, source.files, strict=False):
            try:
                same = _is_unchanged(path, before, record.sha256)
            except OSError:  # it is gone
                same = False
            if not same:
                raise _changed(path)


def _is_unchanged(path: Path, before: Identity, sha256: str) -> bool:
    """The change time also moves when the file gets another hard link (which uv makes of what it installs) or another
    mode: where it alone differs, the contents decide. Raises `OSError`.
    """
    now = identify(path)
    return now == before or (_without_change(now) == _without_change(before) and digest_file(path) == sha256)


def _without_change(identity: Identity) -> tuple[int, ...]:
    size, modified, _, inode = identity
    return (size, modified, inode)


def _changed(path: Path) -> UsageError:
    return UsageError(f"{path} changed while it was read", hint="wait until its writer has finished, then build again")


def is_known(path: Path, cache: Cache) -> bool:
    """Whether the file's digest is remembered: then its steps most likely are, too. Reads nothing of the file."""
    try:
        path = path.absolute()
        return _recall(path, identify(path), cache) is not None
    except OSError:
        return False


def _memory(path: Path, cache: Cache) -> Path:
    name = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()
    return cache.root / "sources" / f"{name}.json"


def _record(path: Path, base: Path, cache: Cache) -> tuple[FileRecord, Identity]:
    announce_look(path)
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path} is not a regular file", hint="give a file, not a pipe or a device")
    before = identity_of(status)
    name = path.relative_to(base).as_posix() if path.is_relative_to(base) else path.as_posix()
    digest = _recall(path, before, cache)
    if digest is None:
        digest = digest_file(path)
        if not _is_unchanged(path, before, digest):
            raise _changed(path)
        if is_settled(before):
            _remember(path, before, digest, cache)
    return FileRecord(path=name, size=before[0], sha256=digest), before


def _recall(path: Path, identity: Identity, cache: Cache) -> str | None:
    memory = recall(kept_at(cache.root, "sources", _memory(path, cache).name), _about(path))
    if not isinstance(memory, dict) or memory.get("identity") != list(identity):
        return None
    return str(memory.get("sha256"))


def _remember(path: Path, identity: Identity, digest: str, cache: Cache) -> None:
    data = seal({"identity": identity, "sha256": digest}, _about(path))
    with contextlib.suppress(OSError):  # a full disk costs the memory, not the build
        replace_whole(_memory(path, cache), data, draft=cache.scratch.new_path())


def _about(path: Path) -> str:
    return f"source {path}"
