"""Samples from a user's Python function, called in the worker."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from bundler.model.errors import UsageError
from bundler.model.signature import Signature
from bundler.onnxkit.elements import element_named
from bundler.onnxkit.user_code import describe, open_function, report_user_errors
from bundler.onnxkit.value_files import Value
from bundler.stages.prepare_data.dataset import DataSet, Samples, UnreadableError, Wanted
from bundler.support.text import visible

MAX_SAMPLES: Final = 100_000
"""A function that yields more is taken to be endless, and reported."""
_HINT: Final = (
    "the function takes no argument and returns an iterable of samples, each a mapping from input name to array; "
    "`yield` them one by one, so that they need not fit into memory"
)


def open_calls(file: Path | None, entry: str, signature: Signature) -> DataSet:
    """The samples of the function `entry`, which is not called yet. Raises `UsageError` where it cannot be found."""

    def take(wanted: Wanted) -> Samples:
        with open_function(file, entry) as function, contextlib.closing(_call(function, file, entry)) as samples:
            for position, sample in enumerate(samples):
                if position >= MAX_SAMPLES:
                    raise UsageError(f"{visible(entry)} yields more than {MAX_SAMPLES:,} samples", hint=_HINT)
                if wanted(position):
                    yield f"{entry.rpartition(':')[2]}-{position:03d}", lambda sample=sample: _adopt(sample, signature)  # type: ignore[misc]

    return DataSet(total=None, take=take)


def _call(function: Callable[..., Any], file: Path | None, entry: str) -> Generator[Any, None, None]:
    with report_user_errors(file, entry):
        result = function()
        if not isinstance(result, Mapping | np.ndarray | str | bytes) and isinstance(result, Iterable):
            yield from result
            return
    raise UsageError(f"{visible(entry)} returned {_kind(result)}, not an iterable of samples", hint=_HINT)


def _adopt(sample: Any, signature: Signature) -> dict[str, Value]:
    """One sample as model input. Python's own numbers have no size: they get the input's."""
    if not isinstance(sample, Mapping):
        raise UnreadableError(f"it is {_kind(sample)}, not a mapping from input name to array")
    types = {port.name: port.type for port in signature.inputs}
    made: dict[str, Value] = {}
    for key, value in sample.items():
        kind = types.get(key)
        if kind is not None and kind.kind != "tensor":
            made[str(key)] = value
            continue
        try:
            made[str(key)] = _array(value, kind.element_type if kind else None)
        except Exception as error:  # whatever the value's own conversion raises
            raise UnreadableError(f"{str(key)!r} cannot be converted to an array: {describe(error)}") from error
    return made


def _array(value: Any, element: str | None) -> np.ndarray:
    array = np.asarray(value)
    plain = isinstance(value, list | tuple | int | float | bool | str)
    if plain and element is not None and array.dtype != np.object_:
        return array.astype(element_named(element).dtype)
    return array


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a value of type {type(value).__name__}"
