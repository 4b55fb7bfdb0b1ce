"""Runs a model whose batch has a fixed size on any number of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from .config import Port
from .errors import InputError

Run = Callable[[Collection[Any]], list[Any]]


def run_batches(run: Run, ports: Sequence[Port], values: Sequence[Any], size: int) -> list[Any]:
    """The outputs for all rows of `values`, in their order: `run` gets `size` rows at a time.

    Where rows are missing in the last batch, its last row is repeated, and what comes of that is dropped. Raises
    `InputError` when inputs do not have the same number of rows, none has any, or an output has another number.
    """
    count = _count_rows(ports, values)
    batches = [
        _run_batch(run, [value[start : start + size] for value in values], size) for start in range(0, count, size)
    ]
    if len(batches) == 1:
        return batches[0]
    return [np.concatenate(parts) for parts in zip(*batches, strict=True)]


def _count_rows(ports: Sequence[Port], values: Sequence[Any]) -> int:
    counts = {}
    for port, value in zip(ports, values, strict=True):
        if not isinstance(value, np.ndarray) or not value.ndim:
            raise InputError(f"input {port.python_name!r} is not an array of rows", hint="give a NumPy array")
        counts[port.python_name] = len(value)
    first, *others = counts.values()
    if any(other != first for other in others):
        shown = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise InputError(
            "the inputs differ in their number of rows", why=shown, hint="give the same number of rows for each"
        )
    if not first:
        raise InputError("the inputs have no rows", hint="give at least one")
    return first


def _run_batch(run: Run, rows: list[Any], size: int) -> list[Any]:
    count = len(rows[0])
    if count < size:
        rows = [np.concatenate([value, np.repeat(value[-1:], size - count, axis=0)]) for value in rows]
    outputs = run(rows)
    for output in outputs:
        if np.shape(output)[:1] != (size,):
            raise InputError(
                "the model cannot be run in batches",
                why=f"of {size} rows it makes an output of shape {list(np.shape(output))}",
                hint="use run",
            )
    return [output[:count] for output in outputs]
