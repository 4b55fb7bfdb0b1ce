"""Folders in the user's cache that are valid for this device: copies of models, and what was generated here.

A folder is written as a draft and renamed into place, so that readers never see an incomplete one; a later start
removes the drafts of killed processes. The record beside the files has their key and
their digests. Damaged folders are removed; what the runtime refuses is not generated again for the same key.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Iterator
from typing import Any

from .errors import IntegrityError
from .integrity import Check, File, Memory, hash_file, leads_out

RECORD = "kept.json"

ABANDONED = 3600
"""Seconds after which a draft counts as abandoned."""


class KeptFolder:
    """One folder. `stem` is the prefix of the paths with the same purpose, `key` is all that its content depends on,
    `thing` its name in messages, `room` the free bytes required to write it. `remark` says why it is not used, where
    the user should know; `refused` that the runtime refuses it, `facts` what was recorded when it was written.
    """

    draft_suffix = ".draft"

    def __init__(self, memory: Memory, *, key: str, stem: str, suffix: str, thing: str, room: int) -> None:
        self.remark = ""
        self.refused = False
        self.facts: dict[str, Any] = {}
        self.folder = f"{stem}{shorten(key)}{suffix}"
        self._memory = memory
        self._key = key
        self._stem = stem
        self._suffix = suffix
        self._thing = thing
        self._room = room
        self._draft: str | None = None

    def accepts(self, path: str) -> bool:
        """Whether a file may be stored there: its path, relative to the folder, stays inside."""
        return not leads_out(path) and path != RECORD

    def find(self) -> Check | None:
        """A running check of the files; None when there is nothing to open."""
        if os.path.islink(self.folder):
            self.drop("it is a link")
            return None
        try:
            files, refusal = self._read_record()
        except FileNotFoundError:
            remove(self.folder)  # A folder without a record was partly removed, and would block a new one.
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            self.drop(f"its record cannot be read ({error})")
            return None
        if refusal:
            self._note_refusal(refusal)
            return None
        return self._check(files)

    def _read_record(self) -> tuple[list[File], str]:
        """The files, and why the runtime refuses them, if it does."""
        with open(os.path.join(self.folder, RECORD), "rb", buffering=0) as stream:
            record = json.loads(stream.readall())
        if record["key"] != self._key:
            raise ValueError("it belongs to another model or machine")
        self.facts = record.get("facts", {})
        return [self._read_file(item) for item in record["files"]], record["refused"]

    def _read_file(self, item: dict[str, Any]) -> File:
        if not self.accepts(item["path"]):
            raise ValueError("it names another file")
        path = os.path.join(self.folder, item["path"])
        if os.path.islink(path):
            raise ValueError("one of its files is a link")
        return File({**item, "path": path})

    def _check(self, files: list[File]) -> Check | None:
        try:
            return Check(self._memory, files)
        except IntegrityError as error:
            self.drop(error.why)
            return None

    def drop(self, why: str) -> None:
        """Remove it, because it is damaged: this start or the next one writes another."""
        self.remark = f"{self._thing} was removed: {why}"
        remove(self.folder)

    def refuse(self, why: str) -> None:
        """Record that the runtime refuses it although it is intact: it is not written again for the same key."""
        self._note_refusal(why)
        self._record(self.folder, [], why)

    def _note_refusal(self, why: str) -> None:
        self.refused = True
        self.remark = f"{self._thing} is not used: the runtime could not open it ({why})"

    def start_draft(self) -> str | None:
        """A draft folder; None without free space or permission."""
        draft = f"{self.folder}-{os.getpid()}-{time.monotonic_ns()}{self.draft_suffix}"
        try:
            os.makedirs(os.path.dirname(draft), mode=0o700, exist_ok=True)
            os.mkdir(draft, 0o700)
            self._draft = draft
            if _measure_room(draft) < self._room:
                raise OSError("no room")  # noqa: TRY301 (one way out for all that keeps it from being made)
        except OSError:
            self.discard_draft()
            return None
        return draft

    def publish(self) -> bool:
        """Rename the draft into place, if there is one. The first process wins, because all write the same. Returns
        whether this draft is in place now.
        """
        draft = self._draft
        if draft is None:
            return False
        try:
            files = [_describe_file(draft, name) for name in list_files(draft)]
            if files and self._record(draft, files, ""):
                os.rename(draft, self.folder)
                self._draft = None
                self._tidy()
                return True
        except (OSError, IntegrityError):
            pass
        self.discard_draft()
        return False

    def discard_draft(self) -> None:
        """Remove the draft."""
        if self._draft is not None:
            remove(self._draft)
        self._draft = None

    def _record(self, folder: str, files: list[dict[str, Any]], refusal: str) -> bool:
        record = {"key": self._key, "payload": self._memory.payload, "files": files, "refused": refusal}
        path = os.path.join(folder, RECORD)
        try:
            with open(f"{path}.new", "w", encoding="utf-8") as stream:
                json.dump({**record, "facts": self.facts}, stream)
            os.replace(f"{path}.new", path)
        except OSError:
            return False
        return True

    def _tidy(self) -> None:
        """Remove folders of the same purpose with another key, those of removed bundles, and abandoned drafts."""
        parent = os.path.dirname(self.folder)
        for name in os.listdir(parent):
            path = os.path.join(parent, name)
            if name.endswith(self._suffix) and path != self.folder:
                if path.startswith(self._stem) or _is_orphan(path):
                    remove(path)
            elif name.endswith(KeptFolder.draft_suffix) and time.time() - os.stat(path).st_mtime > ABANDONED:
                remove(path)


def shorten(text: str) -> str:
    """A short digest for names of folders; the key itself is compared in full."""
    return f"{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"


def list_files(folder: str) -> Iterator[str]:
    """Paths of all files, relative to `folder`, in order."""
    found = [os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names]
    return iter(sorted(os.path.relpath(path, folder) for path in found))


def _describe_file(folder: str, name: str) -> dict[str, Any]:
    path = os.path.join(folder, name)
    size = os.stat(path).st_size
    return {"path": name, "size": size, "sha256": hash_file(path)}


def _measure_room(folder: str) -> int:
    """Free bytes."""
    if hasattr(os, "statvfs"):
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize
    import shutil

    return shutil.disk_usage(folder).free


def _is_orphan(folder: str) -> bool:
    """Whether the bundle of a folder was removed."""
    try:
        with open(os.path.join(folder, RECORD), "rb") as stream:
            return not os.path.isdir(json.load(stream)["payload"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return True


def remove(folder: str) -> None:
    """The record is removed first: a folder without one does not count. What cannot be removed stays until a later
    start. Of a link only the link is removed, not its target.
    """
    try:
        if os.path.islink(folder):
            os.unlink(folder)
            return
        names = sorted(os.listdir(folder), key=lambda name: name != RECORD)
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isdir(path) and not os.path.islink(path):
                remove(path)
            else:
                os.unlink(path)
        os.rmdir(folder)
    except OSError:
        return
