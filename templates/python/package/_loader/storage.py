"""Numbers of types that NumPy lacks, from the bits that they are stored in."""

from __future__ import annotations

import numpy as np

STORAGE: dict[str, tuple[str, int]] = {
    "bfloat16": ("uint16", 16),
    "float8e4m3fn": ("uint8", 17),
    "float8e4m3fnuz": ("uint8", 18),
    "float8e5m2": ("uint8", 19),
    "float8e5m2fnuz": ("uint8", 20),
}
"""Element types that NumPy lacks: the type of their bits, and their number in ONNX (TensorProto.DataType)."""

_LAYOUTS = {"float8e4m3fn": (3, 7), "float8e4m3fnuz": (3, 8), "float8e5m2": (2, 15), "float8e5m2fnuz": (2, 16)}
"""Bits of the fraction, and the bias of the exponent, as the ONNX specification of these types has them."""

_SIGN, _MAGNITUDE = 0x80, 0x7F
_INFINITY = 0x7C
"""In the types that have one (float8e5m2); above it are its NaNs."""


def decode(bits: np.ndarray, element_type: str) -> np.ndarray:
    """The numbers as float32. `bits` are of the type that `STORAGE` names."""
    if element_type == "bfloat16":  # the upper half of a float32
        return (bits.astype(np.uint32) << 16).view(np.float32)
    table: np.ndarray = np.array([_decode_byte(byte, element_type) for byte in range(256)], np.float32)
    numbers: np.ndarray = table[bits]
    return numbers


def _decode_byte(byte: int, element_type: str) -> float:
    fraction_bits, bias = _LAYOUTS[element_type]
    magnitude, negative = byte & _MAGNITUDE, byte >= _SIGN
    exponent, fraction = divmod(magnitude, 1 << fraction_bits)
    special = _find_special(byte, element_type)
    if special is not None:
        return special
    scale = 1 << fraction_bits
    value = (
        (fraction / scale) * 2.0 ** (1 - bias) if exponent == 0 else (1 + fraction / scale) * 2.0 ** (exponent - bias)
    )
    return -value if negative else value


def _find_special(byte: int, element_type: str) -> float | None:
    magnitude = byte & _MAGNITUDE
    if element_type.endswith("fnuz"):  # one NaN, where other types have negative zero
        return float("nan") if byte == _SIGN else None
    if element_type == "float8e4m3fn":  # no infinity
        return float("nan") if magnitude == _MAGNITUDE else None
    if magnitude == _INFINITY:
        return float("-inf") if byte >= _SIGN else float("inf")
    return float("nan") if magnitude > _INFINITY else None
