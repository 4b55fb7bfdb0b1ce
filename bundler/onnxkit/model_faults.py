"""The one place that says which exceptions mean that a user's model is bad, and how that is told."""

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
"""What onnx, ONNX Runtime and protobuf raise over a model that is not sound; the last two also in code of our own that
follows a number or a name of the model to where nothing is. A fault of the disk or of memory is none of the model."""


@contextmanager
def blame_model(message: str, hint: str) -> Iterator[None]:
    """Only for what reads the user's own model: a step that fails on what another step wrote is a failed stage.

    Raises `ModelError` with `message`, and the library's own words for details.
    """
    try:
        yield
    except _FAULTS as cause:
        words = clean_message(cause)
        known = isinstance(cause, (*_NAMED, UnicodeError))
        detail = words if known and words else f"{type(cause).__name__}: {words}".rstrip(": ")
        raise ModelError(message, details=(detail,), hint=hint) from cause


_NAMED: Final = (onnx.checker.ValidationError, onnx.shape_inference.InferenceError)
"""Their words can be understood without the name of the class."""
