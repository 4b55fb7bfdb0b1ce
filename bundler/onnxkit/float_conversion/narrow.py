"""Convert the values of 32-bit weights to 16 bits, and count those out of range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import ml_dtypes
import numpy as np
from onnx import TensorProto
from onnxruntime.transformers.float16 import convert_np_to_float16

from bundler.model.errors import StageError

ONNX_TYPES: Final[Mapping[str, int]] = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
GREATEST: Final[Mapping[str, float]] = {
    "float16": float(np.finfo(np.float16).max),
    "bfloat16": 3.3895313892515355e38,  # seven bits of fraction: (2 - 2**-7) * 2**127
}
"""The largest finite number of each type."""
_MAX_ELEMENTS_AT_ONCE: Final = 1 << 22
"""Elements that are converted at a time: the reference makes several copies of its input."""


def narrow(values: np.ndarray, kind: str, name: str) -> tuple[bytes, int]:
    """The bytes of float32 values as `kind`, and how many were clamped. Raises `StageError` for NaN."""
    flat = values.reshape(-1)
    pieces, clamped = [], 0
    for start in range(0, flat.size, _MAX_ELEMENTS_AT_ONCE):
        piece = flat[start : start + _MAX_ELEMENTS_AT_ONCE]
        if np.isnan(piece).any():
            hint = "the model is damaged: export or download it again"
            raise StageError(f"the weight {name[:80]!r} holds NaN, which cannot be converted", hint=hint)
        clamped += int((np.isfinite(piece) & (np.abs(piece) > GREATEST[kind])).sum())
        converted: np.ndarray = convert_np_to_float16(piece) if kind == "float16" else _to_bfloat16(piece)
        pieces.append(converted.tobytes())
    return b"".join(pieces), clamped


def _to_bfloat16(values: np.ndarray) -> np.ndarray:
    limit = GREATEST["bfloat16"]
    return np.where(np.isfinite(values), np.clip(values, -limit, limit), values).astype(ml_dtypes.bfloat16)
