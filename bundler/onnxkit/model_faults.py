"""Turn the exceptions that a bad user model causes into a `ModelError`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import onnx
from google.protobuf.message import DecodeError, EncodeError

from bundler.model.errors import ModelError
from bundler.onnxkit.sessions import RUNTIME_ERRORS, clean_message

_FAULTS: Final[tuple[type[Exception], ...]] = (
    *RUNTIME_ERRORS,
    onnx.checker.ValidationError,
    onnx.shape_inference.InferenceError,
    DecodeError,
    EncodeError,
    ArithmeticError,
    LookupError,
)
"""Errors of onnx, ONNX Runtime and protobuf for an invalid model; our own code raises the last two as well when it
follows an invalid number or name of the model. A fault of the disk or of memory is not the model's."""


@contextmanager
def raise_model_error(message: str, hint: str) -> Iterator[None]:
    """Only for reading the user's own model: a step that fails on another step's result is a failed stage. Raises
    `ModelError` with `message`, and the library's own message as details.
    """
    try:
        yield
    except _FAULTS as cause:
        words = clean_message(cause)
        known = isinstance(cause, (*_NAMED, UnicodeError))
        detail = words if known and words else f"{type(cause).__name__}: {words}".rstrip(": ")
        raise ModelError(message, details=(detail,), hint=hint) from cause


_NAMED: Final = (onnx.checker.ValidationError, onnx.shape_inference.InferenceError)
"""Errors whose text is understandable without the name of the class."""
