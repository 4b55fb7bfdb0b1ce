"""Shapes that a user gives for inputs: their syntax, and their sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRange:
    """The sizes of an axis, from `least` to `most`; `best` is the one that a provider is tuned for."""

    least: int
    best: int
    most: int

    def describe(self) -> str:
        """`64..192..320`, as it is written; `64..320` where it is tuned for the greatest."""
        best = () if self.best == self.most else (self.best,)
        return RANGE.join(map(str, (self.least, *best, self.most)))


Size = int | SizeRange | None
Shape = tuple[Size, ...]
"""A size for each axis of an input, or a range of sizes; None leaves it as the model has it."""

FixedShape = tuple[int | None, ...]
"""A shape without ranges: what a model is fixed to."""

MAX_SIZE = 2**31 - 1
"""The largest size: several providers address an axis by a 32-bit number."""
MAX_AXES = 32
"""The maximum number of axes; ONNX Runtime's kernels support fewer."""

RANGE = ".."

LEFT_OPEN = ("?", "*")
"""The syntax of a size that stays as in the model."""

_LONGEST = 40
_NUMBER = re.compile(r"-?[0-9]+")


def parse_shape(text: str) -> Shape:
    """`1,3,48,192`, where `?` or `*` leaves a size as the model has it, and `64..320` (or `64..192..320`, with the one
    to tune for between) is a range. Raises `ValueError`, which says why.
    """
    if not text.strip():
        raise ValueError("it names no sizes; an input without axes has no sizes to fix")
    return read_shape([part.strip() for part in text.split(",")])


def read_shape(parts: Sequence[object]) -> Shape:
    """A shape of numbers, and of texts as `parse_shape` splits them. Raises `ValueError`."""
    if not 0 < len(parts) <= MAX_AXES:
        raise ValueError(f"expected 1 to {MAX_AXES} sizes, got {len(parts)}")
    return tuple(_read_size(part) for part in parts)


def split_qualified(key: str, model: str) -> str:
    """The input that `MODEL:INPUT` means of this model; empty where it is for another, or says none."""
    prefix = f"{model}:"
    return key[len(prefix) :] if key.startswith(prefix) else ""


def check_shape(value: object) -> Shape:
    """A shape as a TOML file or JSON has it: an array, or a text. Raises `ValueError`."""
    if isinstance(value, str):
        return parse_shape(value)
    if not isinstance(value, Sequence):
        raise ValueError('expected [1, 3, 48, 192] or "1,3,48,192"')  # noqa: TRY004 - pydantic tells this one
    return read_shape(value)


def _read_size(part: object) -> Size:
    if part is None or part in LEFT_OPEN:
        return None
    if isinstance(part, str) and RANGE in part:
        return _read_range(part)
    return _read_number(part)


def _read_range(text: str) -> SizeRange:
    sizes = [_read_number(part.strip()) for part in text[: _LONGEST * 3].split(RANGE)]
    if len(sizes) not in (2, 3) or sizes != sorted(sizes):
        raise ValueError(
            f"expected a range such as 64..320, or 64..192..320 with the size to tune for, got {_show(text)}"
        )
    if sizes[0] == sizes[-1]:
        raise ValueError(f"a range must have more than one size: write {sizes[0]} instead of {_show(text)}")
    return SizeRange(least=sizes[0], best=sizes[1], most=sizes[-1])


def _read_number(part: object) -> int:
    if isinstance(part, bool) or not isinstance(part, int | str) or not _NUMBER.fullmatch(str(part)[:_LONGEST]):
        raise ValueError(f"expected numbers separated by commas, and ? for a size to leave open, got {_show(part)}")
    size = int(str(part)[:_LONGEST])
    if not 1 <= size <= MAX_SIZE:
        raise ValueError(f"a size must be from 1 to {MAX_SIZE}, got {_show(part)}")
    return size


def write_shape(shape: Iterable[Size | str]) -> str:
    """`1,3,48,192`: as `parse_shape` reads it."""
    return ",".join(_write_size(size) for size in shape)


def _write_size(size: Size | str) -> str:
    if size is None:
        return "?"
    return size.describe() if isinstance(size, SizeRange) else str(size)


def _show(part: object) -> str:
    return ascii(str(part)[:_LONGEST])
