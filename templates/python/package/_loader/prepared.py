"""What must be generated on the device before a variant runs: whether it exists, and how a session is opened on it.

It is in the user's cache folder, or in `BUNDLER_PREPARED`; `BUNDLER_PREPARED=0` turns such variants off. `prewarm`
generates it. Only imported for bundles with such a variant.
"""

from __future__ import annotations

import copy
import json
import os
from typing import Any

import onnxruntime as ort

from .command import name_command
from .config import Variant
from .device import identify_processor
from .drivers import identify_device
from .errors import IntegrityError
from .integrity import Memory, find_stranger
from .keeping import KeptFolder, remove, shorten
from .plugins import PluginError, list_versions
from .sessions import Adapt, open_session

EPOCH = 1
"""Increased when the format of what is prepared changes."""

MODEL = "model.onnx"
VARIABLE = "BUNDLER_PREPARED"

_ROOM = 4
"""Nothing is generated with less free space than this multiple of the model's size."""


class Prepared(KeptFolder):
    """What was, or will be, generated here for one variant."""

    draft_suffix = ".making"  # Compiling may take hours: no other start may take such a draft for abandoned.

    def __init__(self, variant: Variant, memory: Memory, place: str) -> None:
        prepare = variant.prepare or {}
        self.variant = variant
        self.thing: str = prepare["thing"]
        self.is_context = prepare["kind"] == "context"
        super().__init__(
            memory,
            key=_make_key(variant),
            stem=f"{place}-{shorten(variant.label)}-",
            suffix=".prepared",
            thing=f"its {self.thing}",
            room=sum(file.size for file in variant.files) * _ROOM,
        )

    @property
    def lock(self) -> str:
        """The lock file: only its holder may generate."""
        return f"{self._stem}prewarm.lock"

    def clear_drafts(self) -> None:
        """Remove the drafts of killed processes; for the holder of the lock."""
        parent = os.path.dirname(self.folder)
        for name in os.listdir(parent):
            path = os.path.join(parent, name)
            if path.startswith(self._stem) and name.endswith(self.draft_suffix):
                remove(path)

    def publish_anew(self) -> bool:
        """Put the draft into place, replacing what is there. Returns whether it is there now."""
        remove(self.folder)
        return self.publish()

    def explain(self) -> str | None:
        """Why the variant cannot run on it; None when it exists and its files match their checksums."""
        check = self.find()
        if check is not None:
            try:
                check.finish()
            except IntegrityError as error:
                self.drop(error.why)
            else:
                return None
        if self.remark:
            return f"{self.remark}; {_advise(force=self.refused)}"
        return f"its {self.thing} has not been generated on this device yet; {_advise(force=False)}"

    def open(self, folder: str, payload: str, adapt: Adapt | None = None) -> ort.InferenceSession:
        """A session on the files in `folder`. Raises one of `RUNTIME_ERRORS`."""
        shipped = os.path.join(payload, self.variant.model)
        model = os.path.join(folder, MODEL) if self.is_context else shipped
        return open_session(model, self.variant if self.is_context else self.placed(folder), adapt)

    def placed(self, folder: str) -> Variant:
        """The variant with the options that its preparation adds to the first provider, for `folder`."""
        options = (self.variant.prepare or {}).get("options") or {}
        first, *others = self.variant.providers
        added = {key: _put(folder, value) for key, value in options.items()}
        variant = copy.copy(self.variant)
        variant.providers = [{**first, "options": {**first["options"], **added}}, *others]
        return variant

    def note_refusal(self, why: str) -> None:
        """Record that the result failed verification, so that it is not generated again at each start."""
        self.discard_draft()
        draft = self.start_draft()
        if draft is None:
            return
        remove(self.folder)
        self._record(draft, [], why)
        try:
            os.rename(draft, self.folder)
            self._draft = None
        except OSError:
            self.discard_draft()

    def _note_refusal(self, why: str) -> None:
        self.refused = True
        self.remark = f"its {self.thing} was generated on this device and is not used: {why}"


def find_prepared(variant: Variant, memory: Memory) -> Prepared | str:
    """What is prepared for `variant`, whether it exists or not; or the reason why nothing can be."""
    asked = os.environ.get(VARIABLE, "")
    if asked == "0":
        return f"generating on the device is turned off ({VARIABLE}=0)"
    place = memory.place
    fault = memory.refusal
    if asked:
        fault = find_stranger(os.path.abspath(asked))
        name = os.path.basename(place) if place else shorten(os.path.realpath(memory.payload))
        place = os.path.join(os.path.abspath(asked), name)
    if fault:
        return f"what is generated on the device is not used: {fault}"
    if place is None:
        return f"there is no cache folder for files generated on the device; name one in {VARIABLE}"
    try:
        return Prepared(variant, memory, place)
    except PluginError as error:
        return str(error)


def _put(folder: str, value: str) -> str:
    """`value` with the folder in it; where the value is JSON, as JSON writes it."""
    try:
        json.loads(value)
    except ValueError:
        return value.replace("{folder}", folder)
    return value.replace("{folder}", json.dumps(folder)[1:-1])


def _advise(*, force: bool) -> str:
    package = (__package__ or "").rpartition(".")[0]
    return f"run `{name_command(package)} prewarm{' --force' if force else ''}`"


def _make_key(variant: Variant) -> str:
    """All that it depends on: model, runtime, plugins, options, processor, device and driver."""
    files = [(file.path, file.size, file.sha256) for file in variant.files]
    settings: tuple[Any, ...] = (
        variant.session,
        variant.session_config,
        variant.disabled_optimizers,
        variant.providers,
        variant.prepare,
    )
    here = (ort.__version__, list_versions(variant.requires.get("plugins") or {}))
    return repr((EPOCH, here, variant.model, files, settings, identify_processor(), identify_device(variant)))
