"""Element types: one table of ONNX's numbers, ONNX Runtime's words and NumPy's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np
from onnx import TensorProto

from bundler.model.errors import ModelError

_BITS_PER_BYTE: Final = 8


@dataclass(frozen=True, slots=True)
class Element:
    """`name` is the name in signatures and golden sets, `runtime` the word in ONNX Runtime's `tensor(…)`, `onnx` the
    number in a model file. `bits` is the size in storage; two 4-bit elements share a byte, the first one low.
    """

    name: str
    runtime: str
    onnx: int
    dtype: np.dtype
    bits: int

    @property
    def packed(self) -> bool:
        """Whether several elements share a byte."""
        return self.bits < _BITS_PER_BYTE

    @property
    def foreign(self) -> bool:
        """Whether ONNX Runtime's Python API has no NumPy type for it, so that values are passed as plain bytes."""
        return self.dtype.type.__module__ != "numpy"


def _element(name: str, runtime: str, onnx: int, dtype: type, bits: int | None = None) -> Element:
    made = np.dtype(dtype)
    return Element(name, runtime, onnx, made, bits or made.itemsize * _BITS_PER_BYTE)


ELEMENTS = (
    _element("float32", "float", TensorProto.FLOAT, np.float32),
    _element("float64", "double", TensorProto.DOUBLE, np.float64),
    _element("float16", "float16", TensorProto.FLOAT16, np.float16),
    _element("bfloat16", "bfloat16", TensorProto.BFLOAT16, ml_dtypes.bfloat16),
    _element("float8_e4m3fn", "float8e4m3fn", TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
    _element("float8_e4m3fnuz", "float8e4m3fnuz", TensorProto.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz),
    _element("float8_e5m2", "float8e5m2", TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2),
    _element("float8_e5m2fnuz", "float8e5m2fnuz", TensorProto.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz),
    _element("float8_e8m0fnu", "float8e8m0", TensorProto.FLOAT8E8M0, ml_dtypes.float8_e8m0fnu),
    _element("float4_e2m1fn", "float4e2m1", TensorProto.FLOAT4E2M1, ml_dtypes.float4_e2m1fn, 4),
    _element("int2", "int2", TensorProto.INT2, ml_dtypes.int2, 2),
    _element("uint2", "uint2", TensorProto.UINT2, ml_dtypes.uint2, 2),
    _element("int4", "int4", TensorProto.INT4, ml_dtypes.int4, 4),
    _element("uint4", "uint4", TensorProto.UINT4, ml_dtypes.uint4, 4),
    _element("int8", "int8", TensorProto.INT8, np.int8),
    _element("uint8", "uint8", TensorProto.UINT8, np.uint8),
    _element("int16", "int16", TensorProto.INT16, np.int16),
    _element("uint16", "uint16", TensorProto.UINT16, np.uint16),
    _element("int32", "int32", TensorProto.INT32, np.int32),
    _element("uint32", "uint32", TensorProto.UINT32, np.uint32),
    _element("int64", "int64", TensorProto.INT64, np.int64),
    _element("uint64", "uint64", TensorProto.UINT64, np.uint64),
    _element("bool", "bool", TensorProto.BOOL, np.bool_),
    _element("complex64", "complex64", TensorProto.COMPLEX64, np.complex64),
    _element("complex128", "complex128", TensorProto.COMPLEX128, np.complex128),
    _element("str", "string", TensorProto.STRING, np.object_),
)
"""Sizes and numbers are those of onnx.proto; the runtime's words are those of its `DataTypeImpl::ToString`."""
_BY_NAME = {element.name: element for element in ELEMENTS}
_BY_ONNX = {element.onnx: element for element in ELEMENTS}
_BY_RUNTIME = {element.runtime: element for element in ELEMENTS}


def element_named(name: str) -> Element:
    """The element type of a signature or a golden set. Raises `ModelError`."""
    return _find(_BY_NAME, name)


def element_of_onnx(number: int) -> Element:
    """The element type of a number in a model file. Raises `ModelError`."""
    return _find(_BY_ONNX, number)


def element_of_runtime(word: str) -> Element:
    """The element type for ONNX Runtime's word. Raises `ModelError`."""
    return _find(_BY_RUNTIME, word)


def element_of_array(array: np.ndarray) -> Element:
    """The element type of an array; every array of objects or text counts as strings. Raises `ModelError`."""
    if array.dtype.kind in "OUST":
        return _BY_NAME["str"]
    return _find(_BY_NAME, array.dtype.name)


def _find(table: dict[Any, Element], key: str | int) -> Element:
    try:
        return table[key]
    except KeyError:
        raise ModelError(
            f"the model uses the element type {key!r}, which bundler does not support",
            hint="use an element type that bundler's ONNX Runtime supports",
        ) from None


def storage_bytes(element: Element, count: int) -> int:
    """Bytes that `count` elements take in a file."""
    return -(-count * element.bits // _BITS_PER_BYTE)


def to_wide(array: np.ndarray) -> np.ndarray:
    """Numbers of any type as float64 (complex128), so that differences are exact enough."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
