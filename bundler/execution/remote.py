"""A store that a team shares, reached through fsspec: read-through and write-through, behind the local one.

Layout: `records/ab/<key>.json` and one `blobs/cd/<sha256>` for each file. Its content is untrusted: a record must be
signed with the team's key for the requested step, a file must have the size and digest of the record, and no more than
that is fetched. Failures are warnings and never fail a build.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import posixpath
import re
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from bundler.execution.artifacts import ArtifactStore
from bundler.execution.records import ActionRecord, parse_record
from bundler.execution.scratch import Scratch
from bundler.execution.signing import KEY, KEY_FILE, sign, unsign
from bundler.model.artifacts import Artifact, FileRecord
from bundler.model.events import Reporter
from bundler.model.stage import Note
from bundler.support.remembered import MAX_BYTES

T = TypeVar("T")
Warn = Callable[[str], None]
CHUNK_BYTES = 1 << 20
SHARED_PARTS = ("records", "blobs")
"""The folders that a shared store has."""


class RemoteStore:
    """The shared store at `url`, whose records are signed with `key`. Without a key it is left out of the run, as it
    is after a failure. With `readonly` nothing is sent to it.
    """

    def __init__(self, url: str, key: bytes | None = None, *, readonly: bool = False) -> None:
        self.url = url
        self._key = key
        self._readonly = readonly
        self._left_out = threading.Event()
        self._warned: set[str] = set()
        self._guard = threading.Lock()
        self._altered: set[str] = set()

    @property
    def notes(self) -> tuple[Note, ...]:
        """For the user, before anything is asked for: a run that finds all in its local cache asks for little."""
        text = f"the shared cache {self.shown} is not used: there is no key to verify its results"
        hint = f"set {KEY} or {KEY_FILE} to the key of its writers"
        return (Note(text=f"{text}: {hint}", level="warning"),) if self._key is None else ()

    @property
    def shown(self) -> str:
        """The address without a password."""
        return re.sub(r"//[^/@]*@", "//", self.url)

    def fetch_record(self, key: str, reporter: Reporter) -> ActionRecord | None:
        """The record of `key`, authenticated and checked, or None."""
        signed = self._attempt(lambda _: self._read(_record(key)), reporter.warn)
        if signed is None or self._key is None:
            return None
        data = unsign(self._key, key, signed)
        if data is None:
            text = f"the shared cache {self.shown} has results that are not signed with this key: bundler rebuilds them"
            self._warn_once("unsigned", text, reporter.alert)
        return None if data is None else parse_record(key, data)

    def fetch_artifact(self, artifact: Artifact, store: ArtifactStore, scratch: Scratch, warn: Warn) -> bool:
        """Bring an artifact into the local store; True when it is there, whole."""
        folder = scratch.new_folder()
        done = self._attempt(lambda _: self._fetch_files(artifact, folder), warn)
        if not done:
            shutil.rmtree(folder, ignore_errors=True)
            return False
        return store.put(folder, scratch).digest == artifact.digest

    def lacks(self, key: str, warn: Warn) -> bool:
        """Whether a record of `key` is missing and may be sent: one look, at nothing that it holds."""
        if self._readonly:
            return False
        return self._attempt(lambda _: not self._system.exists(self._path(_record(key))), warn) or False

    def push(self, key: str, data: bytes, artifact: Artifact | None, store: ArtifactStore, warn: Warn) -> None:
        """Send a record, signed, and before it the files that it names."""
        if not self._readonly:
            self._attempt(lambda own: self._push(key, sign(own, key, data), artifact, store), warn)

    def _push(self, key: str, signed: bytes, artifact: Artifact | None, store: ArtifactStore) -> None:
        files = artifact.files if artifact else ()
        for record in files:
            place = self._path(_blob(record))
            if not self._holds(place, record):
                source = store.folder(artifact.digest if artifact else "") / record.path
                self._send(place, functools.partial(self._system.put_file, str(source)))
        self._send(self._path(_record(key)), functools.partial(self._system.pipe_file, value=signed))

    def _send(self, place: str, write: Callable[[str], Any]) -> None:
        """Let `write` make the file. In a folder it is renamed into place, which replaces a link or a pipe of others
        instead of writing through it.
        """
        self._system.makedirs(posixpath.dirname(place), exist_ok=True)
        if not self._is_folder:
            write(place)
            return
        draft = f"{place}.{secrets.token_hex(8)}"
        write(draft)
        Path(draft).replace(place)

    def _holds(self, place: str, record: FileRecord) -> bool:
        """Whether the store has the file. A partial upload, or a file that arrived altered, is sent again."""
        if place in self._altered or not self._system.exists(place):
            return False
        return bool(self._system.size(place) == record.size)

    def _fetch_files(self, artifact: Artifact, folder: Path) -> bool:
        for record in artifact.files:
            if not self._fetch_file(record, folder / record.path):
                self._altered.update(self._path(_blob(item)) for item in artifact.files)
                return False
        return True

    def _fetch_file(self, record: FileRecord, path: Path) -> bool:
        """Write the file to `path`; True when its size and digest are as recorded. One byte too many ends it.

        A record may outlive its files: one that is gone is altered, and no reason to leave the store out.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        with path.open("wb") as output, contextlib.suppress(FileNotFoundError):
            for chunk in self._read_chunks(_blob(record), record.size):
                digest.update(chunk)
                size += output.write(chunk)
        return (size, digest.hexdigest()) == (record.size, record.sha256)

    def _read(self, name: str) -> bytes | None:
        try:
            data = b"".join(self._read_chunks(name, MAX_BYTES))
        except FileNotFoundError:
            return None
        return data if len(data) <= MAX_BYTES else None

    def _read_chunks(self, name: str, limit: int) -> Iterator[bytes]:
        """The bytes of a file, up to one more than `limit`: the size that the store reports is not trusted."""
        left, place = limit + 1, self._path(name)
        if self._is_folder and not self._system.isfile(place):
            raise FileNotFoundError(place)  # never open a pipe or a device in a folder of others
        with contextlib.closing(self._system.open(place, "rb")) as stream:
            while left > 0 and (chunk := stream.read(min(CHUNK_BYTES, left))):
                left -= len(chunk)
                yield chunk

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
    def _is_folder(self) -> bool:
        return bool(getattr(self._system, "local_file", False))

    @property
    def _base(self) -> str:
        return self._opened[1]

    def _attempt(self, action: Callable[[bytes], T], warn: Warn) -> T | None:
        if self._key is None or self._left_out.is_set():
            return None
        try:
            return action(self._key)
        except Exception as error:  # noqa: BLE001 - each of fsspec's backends has exceptions of its own
            self._left_out.set()
            text = f"the shared cache {self.shown} does not respond and is not used in this run"
            self._warn_once("broken", f"{text} ({type(error).__name__}: {str(error)[:200]})", warn)
            return None

    def _warn_once(self, subject: str, text: str, warn: Warn) -> None:
        with self._guard:
            known = subject in self._warned
            self._warned.add(subject)
        if not known:
            warn(text)


def _record(key: str) -> str:
    return f"records/{key[:2]}/{key}.json"


def _blob(record: FileRecord) -> str:
    return f"blobs/{record.sha256[:2]}/{record.sha256}"
