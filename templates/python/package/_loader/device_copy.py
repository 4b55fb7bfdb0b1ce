"""The device's own copy of a model: as the runtime laid it out for this processor, so that only the first start pays.

The copy lies in the user's cache folder. It is made while the shipped model is opened, in a draft folder that is
renamed into place, so that a reader sees all of it or nothing, two processes may make it at once, and one that is
killed leaves a draft that a later start removes. What stands beside it says what it was made from and for; with another
model, runtime, processor or configuration it is another copy, and replaces this one. A copy that is damaged is dropped,
one that the runtime refuses is not tried again, and the shipped model is opened in both cases: a copy is never an
obstacle. Set `BUNDLER_DEVICE_COPY=0`, or open the model with `device_copy=False`, to do without.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from typing import Any

from .config import Variant
from .device import identify_processor
from .errors import IntegrityError
from .integrity import Check, File, Memory, hash_file

EPOCH = 1
"""Rises when this module makes copies in another way."""

MODEL, WEIGHTS, RECORD = "model.onnx", "weights.bin", "copy.json"
_SUFFIX, _DRAFT = ".copy", ".draft"

EXTERNAL = 1_000_000
"""From this many bytes on, weights go into a file of their own, which the runtime maps in place of parsing it."""

_ABANDONED = 3600
"""Seconds after which a draft has no maker any more."""

_ROOM = 3
"""Free space, in sizes of the model, below which no copy is made."""


class DeviceCopy:
    """The copy of one variant. `remark` says why it does not run, where that is worth telling."""

    def __init__(self, variant: Variant, memory: Memory, place: str, runtime: str) -> None:
        self.remark = ""
        self._memory = memory
        self._size = sum(file.size for file in variant.files)
        self._has_weights_apart = len(variant.files) > 1
        self._key = _make_key(variant, runtime)
        self._stem = f"{place}-{_shorten(variant.name)}-"
        self._folder = f"{self._stem}{_shorten(self._key)}{_SUFFIX}"
        self._draft: str | None = None
        self._refused = False

    @property
    def model(self) -> str:
        """Where the model of the copy lies."""
        return os.path.join(self._folder, MODEL)

    def find(self) -> Check | None:
        """A check of the copy's files, under way; None when there is no copy to open."""
        try:
            files, refusal = self._read_record()
        except FileNotFoundError:
            _remove(self._folder)  # What has no record was half removed, and would stand in the way of another.
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            self.drop(f"what stands beside it cannot be read ({error})")
            return None
        if refusal:
            self._refused = True
            self.remark = f"the device's own copy is not used: the runtime could not open it ({refusal})"
            return None
        return self._check(files)

    def _read_record(self) -> tuple[list[File], str]:
        """The files of the copy, and why the runtime refuses it, if it does."""
        with open(os.path.join(self._folder, RECORD), "rb", buffering=0) as stream:
            record = json.loads(stream.readall())
        if record["key"] != self._key:
            raise ValueError("it is of another model or machine")
        return [self._read_file(item) for item in record["files"]], record["refused"]

    def _read_file(self, item: dict[str, Any]) -> File:
        if item["path"] not in (MODEL, WEIGHTS):
            raise ValueError("it names another file")
        return File({**item, "path": os.path.join(self._folder, item["path"])})

    def _check(self, files: list[File]) -> Check | None:
        try:
            return Check(self._memory, files)
        except IntegrityError as error:
            self.drop(error.why)
            return None

    def drop(self, why: str) -> None:
        """The copy is damaged: without it the next start, or this one, makes another."""
        self.remark = f"the device's own copy was dropped: {why}"
        _remove(self._folder)

    def refuse(self, why: str) -> None:
        """The runtime does not open the copy though it is whole: it is not made again for the same key."""
        self.remark = f"the device's own copy is not used: the runtime could not open it ({why})"
        self._refused = True
        self._record(self._folder, [], why)

    def start_draft(self) -> str | None:
        """Where the runtime may save the copy; None when there is no room or no right to."""
        if self._refused:
            return None
        draft = f"{self._folder}-{os.getpid()}-{time.monotonic_ns()}{_DRAFT}"
        try:
            os.makedirs(os.path.dirname(draft), mode=0o700, exist_ok=True)
            os.mkdir(draft, 0o700)
            self._draft = draft
            if _measure_room(draft) < self._size * _ROOM:
                raise OSError("no room")  # noqa: TRY301 (one way out for all that keeps it from being made)
        except OSError:
            self.discard_draft()
            return None
        return os.path.join(draft, MODEL)

    @property
    def wants_weights_apart(self) -> bool:
        """Whether the weights go into a file of their own. From a model that has such a file they have to: the runtime
        would write a reference to the shipped one.
        """
        return self._has_weights_apart or self._size >= EXTERNAL

    def publish(self) -> None:
        """Put the draft into place, when there is one. Whoever was quicker wins: their copy is the same."""
        draft = self._draft
        if draft is None:
            return
        try:
            files = [_describe_file(draft, name) for name in sorted(os.listdir(draft))]
            if files and self._record(draft, files, ""):
                os.rename(draft, self._folder)
                self._draft = None
                self._tidy()
        except (OSError, IntegrityError):
            pass
        self.discard_draft()

    def discard_draft(self) -> None:
        """Remove what was begun."""
        if self._draft is not None:
            _remove(self._draft)
        self._draft = None

    def _record(self, folder: str, files: list[dict[str, Any]], refusal: str) -> bool:
        record = {"key": self._key, "payload": self._memory.payload, "files": files, "refused": refusal}
        path = os.path.join(folder, RECORD)
        try:
            with open(f"{path}.new", "w", encoding="utf-8") as stream:
                json.dump(record, stream)
            os.replace(f"{path}.new", path)
        except OSError:
            return False
        return True

    def _tidy(self) -> None:
        """Remove copies of this variant under another key, those of bundles that are gone, and abandoned drafts."""
        parent = os.path.dirname(self._folder)
        for name in os.listdir(parent):
            path = os.path.join(parent, name)
            if name.endswith(_SUFFIX) and path != self._folder:
                if path.startswith(self._stem) or _is_orphan(path):
                    _remove(path)
            elif name.endswith(_DRAFT) and time.time() - os.stat(path).st_mtime > _ABANDONED:
                _remove(path)


def find_device_copy(variant: Variant, memory: Memory, runtime: str) -> DeviceCopy | None:
    """The copy of `variant` for this device, be it made or not; None where none is wanted.

    `runtime` is the version of the runtime.
    """
    if not variant.device_cache or memory.place is None:
        return None
    return DeviceCopy(variant, memory, memory.place, runtime)


def device_copy_wanted() -> bool:
    """Whether the environment lets the loader keep copies."""
    return os.environ.get("BUNDLER_DEVICE_COPY", "") != "0"


def _make_key(variant: Variant, runtime: str) -> str:
    """All that the copy depends on. Kept as it is: a digest would cost an import, and hide what differs."""
    files = [(file.path, file.size, file.sha256) for file in variant.files]
    settings = (variant.session, variant.session_config, variant.disabled_optimizers, variant.providers)
    return repr((EPOCH, runtime, variant.model, files, settings, identify_processor()))


def _shorten(text: str) -> str:
    """For names of folders; the key itself is compared in full."""
    return f"{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"


def _describe_file(folder: str, name: str) -> dict[str, Any]:
    path = os.path.join(folder, name)
    size = os.stat(path).st_size
    return {"path": name, "size": size, "sha256": hash_file(path, size)}


def _measure_room(folder: str) -> int:
    """Free bytes."""
    if hasattr(os, "statvfs"):
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize
    import shutil

    return shutil.disk_usage(folder).free


def _is_orphan(folder: str) -> bool:
    """Whether the bundle of a copy is gone."""
    try:
        with open(os.path.join(folder, RECORD), "rb") as stream:
            return not os.path.isdir(json.load(stream)["payload"])
    except (OSError, ValueError, KeyError, TypeError):
        return True


def _remove(folder: str) -> None:
    """The record goes first: a copy without one is none. What cannot be removed stays until a later start."""
    try:
        names = sorted(os.listdir(folder), key=lambda name: name != RECORD)
        for name in names:
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
    except OSError:
        return
