"""Call a user's own metric, and check that it distinguishes correct answers from those of other samples."""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bundler.model.errors import BundlerError, UsageError
from bundler.model.stage import Note
from bundler.onnxkit.user_code import report_user_errors
from bundler.support.text import visible


def call_metric(function: Callable[[Any], Any], file: Path, samples: Any) -> float:
    """The metric's number for the samples. Raises `UsageError` where it fails or gives none."""
    with report_user_errors(file):
        found = function(samples)
    number = found.item() if hasattr(found, "item") and getattr(found, "size", 1) == 1 else found
    with contextlib.suppress(OverflowError):  # an integer beyond every floating-point number
        if _is_number(number) and math.isfinite(number):
            return float(number)
    hint = "it must return one finite number for the given samples; higher is better"
    raise UsageError(f"the metric in {visible(file.name)} returned {_describe(found)}, not a number", hint=hint)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _describe(value: Any) -> str:
    if _is_number(value):
        return str(value)
    return "nothing" if value is None else f"a value of type {type(value).__name__}"


def check_metric(measure: Callable[[], float], reference: float, samples: int) -> tuple[Note, ...]:
    """A warning if wrong outputs have the same value as correct ones. A metric that rejects them passes."""
    if samples < 2:  # noqa: PLR2004 - one sample has no other outputs
        return ()
    try:
        found = measure()
    except BundlerError:
        return ()
    if found > reference:
        text = (
            f"the metric is {found:g} with the outputs of other samples, and {reference:g} with the correct ones: "
            "higher must be better, so return the negative of an error"
        )
        return (Note(text=text, level="warning"),)
    if found != reference:
        return ()
    text = (
        f"the metric is {reference:g} with the original model's outputs, and the same with the outputs of other "
        "samples: on these samples it cannot distinguish correct outputs from wrong ones"
    )
    return (Note(text=text, level="warning"),)


def find_opposite(place: int, count: int) -> int:
    """The sample half a set further on."""
    return (place + count // 2) % count
