"""Opens one variant: from the shipped file, or from the device's own copy of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import onnxruntime as ort

from .config import Variant
from .errors import IntegrityError
from .integrity import Memory
from .runtime_errors import RUNTIME_ERRORS, first_line
from .sessions import open_finished, open_session, save_model

if TYPE_CHECKING:
    from .device_copy import DeviceCopy


def device_copy_wanted() -> bool:
    """Whether the environment lets the loader keep copies."""
    return os.environ.get("BUNDLER_DEVICE_COPY", "") != "0"


class Opened:
    """A variant with its open session. `from_copy` says that the session runs the device's own copy, `prepared` that it
    runs on what was made here by `prewarm`, `remark` why a copy that was there does not run.
    """

    __slots__ = ("_copy", "from_copy", "prepared", "session", "variant")

    def __init__(
        self,
        variant: Variant,
        session: ort.InferenceSession,
        copy: DeviceCopy | None = None,
        *,
        from_copy: bool = False,
        prepared: bool = False,
    ) -> None:
        self.variant = variant
        self.session = session
        self.from_copy = from_copy
        self.prepared = prepared
        self._copy = copy

    @property
    def remark(self) -> str:
        """One sentence, or nothing."""
        return "" if self._copy is None else self._copy.remark

    def keep_copy(self) -> Opened:
        """Publish the copy that was made on the way, if any: the shipped file was found good."""
        if self._copy is not None:
            self._copy.publish()
        return self

    def forget_draft(self) -> None:
        """Remove a copy that was begun and not published."""
        if self._copy is not None:
            self._copy.discard_draft()


def open_plainly(variant: Variant, memory: Memory) -> Opened:
    """From the shipped file. Raises one of `RUNTIME_ERRORS`."""
    return Opened(variant, open_session(_shipped(variant, memory), variant))


def open_with_copy(variant: Variant, memory: Memory, copy: DeviceCopy) -> Opened:
    """From the device's own copy when there is a good one; else from the shipped file, making a copy on the way.

    Raises one of `RUNTIME_ERRORS` when the shipped file cannot be opened.
    """
    session, refusal = _open_copy(variant, copy)
    if session is not None:
        return Opened(variant, session, copy, from_copy=True)
    if refusal:
        opened = Opened(variant, open_session(_shipped(variant, memory), variant), copy)
        copy.refuse(refusal)  # Only now: the fault lies with the copy, for the shipped file opens.
        return opened
    return Opened(variant, _open_and_save(variant, memory, copy), copy)


def _open_copy(variant: Variant, copy: DeviceCopy) -> tuple[ort.InferenceSession | None, str]:
    """The session, or why the runtime refuses a copy that is whole; neither when there is no good copy."""
    check = copy.find()
    if check is None:
        return None, ""
    session, refusal = None, ""
    try:
        session = open_finished(copy.model, variant)
    except RUNTIME_ERRORS as error:
        refusal = first_line(error)
    try:
        check.finish()
    except IntegrityError as error:
        copy.drop(error.why)
        return None, ""
    return session, refusal


def _open_and_save(variant: Variant, memory: Memory, copy: DeviceCopy) -> ort.InferenceSession:
    shipped = _shipped(variant, memory)
    path = copy.start_draft_model()
    if path is not None:
        weights = copy.weights_name
        try:
            return open_session(shipped, variant, lambda options: save_model(options, path, weights))
        except RUNTIME_ERRORS:
            copy.discard_draft()  # No space, or a model that cannot be saved: what follows tells which.
    return open_session(shipped, variant)


def _shipped(variant: Variant, memory: Memory) -> str:
    return os.path.join(memory.payload, variant.model)
