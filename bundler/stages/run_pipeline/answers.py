"""What a pipeline answers: plain values that can be compared."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bundler.model.errors import UsageError
from bundler.support.text import visible

MAX_DEPTH: Final = 30
"""Nesting of an answer."""
_LARGEST: Final = 1 << 1000
_MAX_SHOWN: Final = 60
"""Characters of a value that a difference shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Two numbers are equal if they differ by no more than `absolute` and `relative` times the first."""

    absolute: float
    relative: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Two values at `place` (`[2].text`), in words; `size` is the difference of two numbers, `counts` whether it is
    beyond the tolerance.
    """

    place: str
    text: str
    size: float = 0.0
    counts: bool = True


def read_answer(value: Any, depth: int = 0) -> Any:
    """The answer as lists, dictionaries with text as keys, arrays, numbers and text. Raises `UsageError` for others."""
    if depth > MAX_DEPTH:
        raise _cannot_compare("a value that is nested too deeply")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): read_answer(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [read_answer(item, depth + 1) for item in value]
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcUSO":
        plain = value.dtype.kind not in "USO" and np.ndim(value)
        return np.asarray(value) if plain else read_answer(value.tolist(), depth)
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return value
    raise _cannot_compare(f"a value of type {type(value).__name__}")


def _cannot_compare(what: str) -> UsageError:
    return UsageError(
        f"the pipeline returned {visible(what)}, which cannot be compared",
        hint="return lists, dictionaries, dataclasses, arrays, numbers and text",
    )


def compare_answers(first: Any, second: Any, tolerance: Tolerance, place: str = "") -> Iterator[Difference]:
    """Every place where two answers differ, of numbers within the tolerance, too."""
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        yield from _compare_arrays(first, second, tolerance, place)
    elif isinstance(first, dict) and isinstance(second, dict) and list(first) == list(second):
        for key, item in first.items():
            yield from compare_answers(item, second[key], tolerance, f"{place}.{key}")
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, item in enumerate(first):
            yield from compare_answers(item, second[index], tolerance, f"{place}[{index}]")
    elif _is_number(first) and _is_number(second):
        yield from _compare_numbers(first, second, tolerance, place)
    elif type(first) is not type(second) or first != second:
        yield Difference(place=place, text=f"{_show(second)} instead of {_show(first)}")


def _is_number(value: Any) -> bool:
    """Whether it is one that a double holds: larger integers are compared as they are."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < _LARGEST
    return isinstance(value, float | complex)


def _compare_numbers(first: Any, second: Any, tolerance: Tolerance, place: str) -> Iterator[Difference]:
    if first == second or (first != first and second != second):  # noqa: PLR0124 - NaN
        return
    size = abs(first - second)
    limit = tolerance.absolute + tolerance.relative * abs(first)
    counts = not (math.isfinite(size) and size <= limit)
    yield Difference(place=place, text=f"{second:g} instead of {first:g}", size=size, counts=counts)


def _compare_arrays(first: Any, second: Any, tolerance: Tolerance, place: str) -> Iterator[Difference]:
    same = isinstance(first, np.ndarray) and isinstance(second, np.ndarray)
    if not same or first.shape != second.shape or first.dtype != second.dtype:
        yield Difference(place=place, text=f"{_show(second)} instead of {_show(first)}")
        return
    unequal = (first != second) & ~((first != first) & (second != second))  # noqa: PLR0124 - NaN
    if not unequal.any():
        return
    if first.dtype.kind == "b":
        yield Difference(place=place, text=f"{int(unequal.sum())} of {first.size} values differ")
        return
    wide = (item[unequal].astype(np.complex128 if item.dtype.kind == "c" else np.float64) for item in (first, second))
    reference, actual = wide
    with np.errstate(invalid="ignore", over="ignore"):
        sizes = np.abs(reference - actual)
        beyond = ~(sizes <= tolerance.absolute + tolerance.relative * np.abs(reference))
    text = f"{int(unequal.sum())} of {first.size} values differ, by up to {sizes.max():g}"
    yield Difference(place=place, text=text, size=float(sizes.max()), counts=bool(beyond.any()))


def _show(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array {value.dtype}{list(value.shape)}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"a mapping with {', '.join(list(value)[:3]) or 'nothing'}"[:_MAX_SHOWN]
    return visible(repr(value))[:_MAX_SHOWN]
