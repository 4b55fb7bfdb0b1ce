"""Infer shapes within bounds of memory."""

from __future__ import annotations

import faulthandler
import os
import sys
import warnings
from typing import IO, Final, NoReturn

import onnx
from onnx import ModelProto
from onnx.shape_inference import InferenceError

from bundler.support.processes import bounded_memory

_MAX_BYTES: Final = 256 << 20
"""Memory of shape inference, in addition to its copies of the model; models of public packages took at most 12 MB."""
_COPIES: Final = 8
"""The library holds the model as a message and as bytes, on both sides, before and after."""
_INFERRED: Final = b"="
"""The first byte of the answer with a model; any other answer is the text of an error."""


def infer_shapes(model: ModelProto, *, data_prop: bool = False, strict: bool = False) -> ModelProto:
    """The model with the shapes that ONNX infers. Raises `InferenceError`, also for too much memory, and with `strict`
    for nodes whose inputs do not fit.

    Inference computes small constants, and holds every rank: a `Range` of a few bytes asks for all memory. The library
    may crash when it gets none, so it runs in a copy of this process. Linux alone has such a limit.
    """
    if sys.platform != "linux":  # elsewhere, only the worker's own limit holds
        plain: ModelProto = onnx.shape_inference.infer_shapes(model, strict_mode=strict, data_prop=data_prop)
        return plain
    inferred = ModelProto()
    with os.fdopen(os.memfd_create("inferred"), "w+b") as answer:
        with warnings.catch_warnings():  # the copy runs nothing that other threads hold locks of
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if not child:
            _infer_bounded(model, answer, strict_mode=strict, data_prop=data_prop)
        if os.waitpid(child, 0)[1]:
            raise InferenceError("shape inference requires more memory than any known model")
        answer.seek(0)
        if answer.read(1) != _INFERRED:
            raise InferenceError(answer.read().decode("utf-8", "replace"))
        inferred.ParseFromString(answer.read())
    return inferred


def _infer_bounded(model: ModelProto, answer: IO[bytes], **options: bool) -> NoReturn:
    """Write the answer and end this process, with an exit code other than 0 when memory runs out."""
    faulthandler.disable()  # a crash for want of memory is an answer
    try:
        with bounded_memory(_MAX_BYTES + _COPIES * model.ByteSize()):
            answer.write(_attempt(model, **options))
            answer.flush()
        os._exit(0)
    finally:
        os._exit(1)


def _attempt(model: ModelProto, **options: bool) -> bytes:
    try:
        inferred: ModelProto = onnx.shape_inference.infer_shapes(model, **options)
    except (InferenceError, RuntimeError, ValueError) as error:
        return b"!" + str(error).encode("utf-8", "replace")
    data: bytes = inferred.SerializeToString()
    return _INFERRED + data
