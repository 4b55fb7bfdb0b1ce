"""The device's own copy of a model, optimised by the runtime for this processor, so that only the first start is slow.

The copy is stored in the user's cache folder. It is written while the shipped model is opened, in a draft folder that
is renamed into place: a reader sees the whole copy or none, two processes may write it at once, and a draft of a killed
process is removed by a later start. A key beside it holds the model, runtime, processor and configuration; when one of
these changes, a new copy replaces it. A damaged copy is deleted, one that the runtime refuses is not tried again; in
both cases the shipped model is opened. `BUNDLER_DEVICE_COPY=0`, or `device_copy=False`, turns copies off.
"""

from __future__ import annotations

import os

from .config import Variant
from .device import identify_processor
from .integrity import Memory
from .keeping import KeptFolder, shorten

EPOCH = 1
"""Increased when the format of copies changes."""

MODEL, WEIGHTS = "model.onnx", "weights.bin"

EXTERNAL = 1_000_000
"""From this many bytes on, weights are stored in a separate file, which the runtime maps instead of parsing."""

_ROOM = 3
"""No copy is made with less free space than this multiple of the model's size."""


class DeviceCopy(KeptFolder):
    """The copy of one variant. `remark` says why it is not used, where the user should know."""

    def __init__(self, variant: Variant, memory: Memory, place: str, runtime: str) -> None:
        size = sum(file.size for file in variant.files)
        super().__init__(
            memory,
            key=_make_key(variant, runtime),
            stem=f"{place}-{shorten(variant.label)}-",
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
        """Where the runtime may save the copy; None without space or permission, or when the runtime refuses it."""
        draft = None if self.refused else self.start_draft()
        return None if draft is None else os.path.join(draft, MODEL)

    @property
    def weights_name(self) -> str | None:
        """The name of the separate file for weights, if there is one. A model that has such a file requires it:
        otherwise the runtime would write a reference to the shipped one.
        """
        return WEIGHTS if self._has_weights_apart or self._size >= EXTERNAL else None


def find_device_copy(variant: Variant, memory: Memory, runtime: str) -> DeviceCopy | None:
    """The copy of `variant` for this device, whether it exists or not; None where none can be stored.

    `runtime` is the version of the runtime.
    """
    return None if memory.place is None else DeviceCopy(variant, memory, memory.place, runtime)


def _make_key(variant: Variant, runtime: str) -> str:
    """All that the copy depends on, in plain text: a digest would cost an import, and hide what differs."""
    files = [(file.path, file.size, file.sha256) for file in variant.files]
    settings = (variant.session, variant.session_config, variant.disabled_optimizers, variant.providers)
    return repr((EPOCH, runtime, variant.model, files, settings, identify_processor()))
