"""A store that a team shares, reached through fsspec: read-through and write-through, behind the local one.

Layout: `records/ab/<key>.json` and one `blobs/cd/<sha256>` for each file. Nothing that comes from it is believed: a
record must bear its own digest and lead to its key, a file must have its size and digest. Its failures are warnings,
never the end of a build.
"""

from __future__ import annotations

import functools
import posixpath
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from bundler.execution.artifacts import ArtifactStore, copy_into
from bundler.execution.records import ActionRecord, parse_record
from bundler.execution.scratch import Scratch
from bundler.model.artifacts import Artifact, FileRecord

T = TypeVar("T")
Warn = Callable[[str], None]


class RemoteStore:
    """The shared store at `url`. After a failure it is left alone for the rest of the run."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._broken = threading.Event()
        self._altered: set[str] = set()

    def fetch_record(self, key: str, warn: Warn) -> ActionRecord | None:
        """The record of `key`, checked, or None."""
        data = self._attempt(lambda: self._read(f"records/{key[:2]}/{key}.json"), warn)
        return None if data is None else parse_record(key, data)

    def fetch_artifact(self, artifact: Artifact, store: ArtifactStore, scratch: Scratch, warn: Warn) -> bool:
        """Bring an artifact into the local store; True when it is there, whole."""
        folder = scratch.new_folder()
        done = self._attempt(lambda: self._fetch_files(artifact, folder), warn)
        if not done:
            shutil.rmtree(folder, ignore_errors=True)
            return False
        return store.put(folder, scratch).digest == artifact.digest

    def push(self, key: str, data: bytes, artifact: Artifact | None, store: ArtifactStore, warn: Warn) -> None:
        """Send a record, and before it the files that it names."""
        self._attempt(lambda: self._push(key, data, artifact, store), warn)

    def _push(self, key: str, data: bytes, artifact: Artifact | None, store: ArtifactStore) -> None:
        files = artifact.files if artifact else ()
        for record in files:
            place = self._path(_blob(record))
            if not self._holds(place, record):
                self._system.makedirs(posixpath.dirname(place), exist_ok=True)
                self._system.put_file(str(store.folder(artifact.digest if artifact else "") / record.path), place)
        place = self._path(f"records/{key[:2]}/{key}.json")
        self._system.makedirs(posixpath.dirname(place), exist_ok=True)
        self._system.pipe_file(place, data)

    def _holds(self, place: str, record: FileRecord) -> bool:
        """Whether the store has the file. An upload that was cut, or a file that arrived altered, is sent again."""
        if place in self._altered or not self._system.exists(place):
            return False
        return bool(self._system.size(place) == record.size)

    def _fetch_files(self, artifact: Artifact, folder: Path) -> bool:
        for record in artifact.files:
            place = self._path(_blob(record))
            if not copy_into(record, folder, functools.partial(self._get, place)):
                self._altered.update(self._path(_blob(item)) for item in artifact.files)
                return False
        return True

    def _get(self, place: str, path: Path) -> None:
        self._system.get_file(place, str(path))

    def _read(self, name: str) -> bytes | None:
        try:
            return bytes(self._system.cat_file(self._path(name)))
        except FileNotFoundError:
            return None

    def _path(self, name: str) -> str:
        return posixpath.join(self._base, name)

    @functools.cached_property
    def _opened(self) -> tuple[Any, str]:
        import fsspec  # noqa: PLC0415 - only a shared cache needs it

        system, base = fsspec.core.url_to_fs(self.url)
        return system, str(base)

    @property
    def _system(self) -> Any:
        return self._opened[0]

    @property
    def _base(self) -> str:
        return self._opened[1]

    def _attempt(self, action: Callable[[], T], warn: Warn) -> T | None:
        if self._broken.is_set():
            return None
        try:
            return action()
        except Exception as error:  # noqa: BLE001 - each of fsspec's backends has exceptions of its own
            if not self._broken.is_set():
                self._broken.set()
                warn(
                    f"the shared cache {self.url} does not answer and is left out of this run"
                    f" ({type(error).__name__}: {str(error)[:200]})"
                )
            return None


def _blob(record: FileRecord) -> str:
    return f"blobs/{record.sha256[:2]}/{record.sha256}"
