"""The device's own copy of a model: as the runtime laid it out for this processor, so that only the first start pays.

The copy lies in the user's cache folder. It is made while the shipped model is opened, in a draft folder that is
renamed into place, so that a reader sees all of it or nothing, two processes may make it at once, and one that is
killed leaves a draft that a later start removes. What stands beside it says what it was made from and for; with another
model, runtime, processor or configuration it is another copy, and replaces this one. A copy that is damaged is dropped,
one that the runtime refuses is not tried again, and the shipped model is opened in both cases: a copy is never an
obstacle. Set `BUNDLER_DEVICE_COPY=0`, or open the model with `device_copy=False`, to do without.
"""

from __future__ import annotations

import os

from .config import Variant
from .device import identify_processor
from .integrity import Memory
from .keeping import KeptFolder, shorten

EPOCH = 1
"""Rises when this module makes copies in another way."""

MODEL, WEIGHTS = "model.onnx", "weights.bin"

EXTERNAL = 1_000_000
"""From this many bytes on, weights go into a file of their own, which the runtime maps in place of parsing it."""

_ROOM = 3
"""Free space, in sizes of the model, below which no copy is made."""


class DeviceCopy(KeptFolder):
    """The copy of one variant. `remark` says why it does not run, where that is worth telling."""

    def __init__(self, variant: Variant, memory: Memory, place: str, runtime: str) -> None:
        size = sum(file.size for file in variant.files)
        super().__init__(
            memory,
            key=_make_key(variant, runtime),
            stem=f"{place}-{shorten(variant.name)}-",
            suffix=".copy",
            thing="the device's own copy",
            room=size * _ROOM,
        )
        self._size = size
        self._has_weights_apart = len(variant.files) > 1

    @property
    def model(self) -> str:
        """Where the model of the copy lies."""
        return os.path.join(self.folder, MODEL)

    def accepts(self, path: str) -> bool:
        """Whether a file of this name is part of a copy."""
        return path in (MODEL, WEIGHTS)

    def start_draft_model(self) -> str | None:
        """Where the runtime may save the copy; None when there is no room or no right to, or the runtime refuses it."""
        draft = None if self.refused else self.start_draft()
        return None if draft is None else os.path.join(draft, MODEL)

    @property
    def weights_name(self) -> str | None:
        """The file of their own that the weights go into, if they do. From a model that has such a file they have to:
        the runtime would write a reference to the shipped one.
        """
        return WEIGHTS if self._has_weights_apart or self._size >= EXTERNAL else None


def find_device_copy(variant: Variant, memory: Memory, runtime: str) -> DeviceCopy | None:
    """The copy of `variant` for this device, be it made or not; None where none can be kept.

    `runtime` is the version of the runtime.
    """
    return None if memory.place is None else DeviceCopy(variant, memory, memory.place, runtime)


def _make_key(variant: Variant, runtime: str) -> str:
    """All that the copy depends on. Kept as it is: a digest would cost an import, and hide what differs."""
    files = [(file.path, file.size, file.sha256) for file in variant.files]
    settings = (variant.session, variant.session_config, variant.disabled_optimizers, variant.providers)
    return repr((EPOCH, runtime, variant.model, files, settings, identify_processor()))
