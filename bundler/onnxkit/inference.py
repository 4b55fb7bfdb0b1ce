"""Infer shapes within bounds of memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import onnx
from onnx import ModelProto

_MAX_BYTES: Final = 256 << 20
"""Memory of shape inference, in addition to its copies of the model; models of public packages took at most 12 MB."""
_COPIES: Final = 8
"""The library holds the model as a message and as bytes, on both sides, before and after."""


def infer_shapes(model: ModelProto, *, data_prop: bool = False, strict: bool = False) -> ModelProto:
    """The model with the shapes that ONNX infers. Raises the library's errors (with `strict`, also for nodes whose
    inputs do not fit), and `InferenceError` for too much memory.
    """
    try:
        with _bounded_memory(_MAX_BYTES + _COPIES * model.ByteSize()):
            inferred: ModelProto = onnx.shape_inference.infer_shapes(model, strict_mode=strict, data_prop=data_prop)
    except MemoryError as cause:
        text = "shape inference requires more memory than any known model"
        raise onnx.shape_inference.InferenceError(text) from cause
    return inferred


@contextmanager
def _bounded_memory(size: int) -> Iterator[None]:
    """Shape inference computes small constants, and holds every rank: a `Range` of a few bytes asks for all memory."""
    if sys.platform != "linux":  # elsewhere, only the worker's own limit holds
        yield
        return
    import resource  # noqa: PLC0415 - not on Windows

    limits = resource.getrlimit(resource.RLIMIT_DATA)
    status = Path("/proc/self/status").read_text("utf-8")
    bound = int(status.partition("VmData:")[2].split()[0]) * 1024 + size
    kept = [limit for limit in limits if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(bound, *kept) if kept else bound, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, limits)
