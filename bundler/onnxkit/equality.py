"""Check whether two values are bitwise equal, and whether they are finite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bundler.onnxkit.elements import element_of_array, to_wide
from bundler.onnxkit.value_files import Value, tensors_of


def same_value(one: Value, other: Value) -> bool:
    """Equal in kind, type, shape and every bit; NaN equals NaN."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return _same_array(one, other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_value, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(_same_scalar, one.values(), other.values()))
    return one is None and other is None


def _same_array(one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape or element_of_array(one) != element_of_array(other):
        return False
    if one.dtype.kind in "OUST":
        return bool((one == other).all())
    return np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()


def _same_scalar(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124 - only NaN differs from itself


def value_is_finite(value: Value) -> bool:
    """Whether no number in the value is NaN or infinite."""
    return all(np.isfinite(to_wide(array)).all() for array in numbers(value))


def numbers(value: Value) -> Iterator[np.ndarray]:
    """All arrays of floating-point numbers in a value, a map's values as one."""
    return filter(is_float, tensors_of(value))


def is_float(array: np.ndarray) -> bool:
    """Whether an array holds floating-point numbers, of NumPy's types or of those that it lacks."""
    if array.dtype.kind in "OUSTM":
        return False
    name = element_of_array(array).name
    return "float" in name or "complex" in name
