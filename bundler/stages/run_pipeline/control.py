"""Which models make a difference to a pipeline's answers: it is asked again while a model's outputs are altered.

A pipeline whose answers stay equal whatever a model answers cannot tell a wrong model from the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from bundler.model.errors import BundlerError
from bundler.stages.run_pipeline.answers import Tolerance, compare_answers
from bundler.stages.run_pipeline.bundles import Alter, Bundle, Component, EndlessError
from bundler.stages.run_pipeline.samples import Answered

MAX_SAMPLES: Final = 8
"""Samples that are answered again for a model whose outputs made no difference in those before."""
_MORE_CALLS, _LEAST_CALLS = 10, 100
"""A loop over a model's outputs that never ends has made this many times its usual calls, and at least so many."""


def find_unnoticed(
    answer: Callable[[Path], Any], bundle: Bundle, answered: Sequence[Answered], tolerance: Tolerance
) -> tuple[str, ...]:
    """Components whose outputs can be reversed, negated or all zero, and every answer of `bundle` is the same. Each
    sample has been `answered` before, with so many calls of each component.
    """

    def is_noticed(name: str, component: Component) -> bool:
        known = [one for one in answered if one.calls[name]][:MAX_SAMPLES]
        for alter, one in product((_reverse, _negate, _clear), known):
            with component.altered(alter, max(_LEAST_CALLS, _MORE_CALLS * one.calls[name])):
                found = _try(answer, one.path)
            if found is None or any(item.counts for item in compare_answers(one.reference, found, tolerance)):
                return True
        return False

    return tuple(name for name, component in bundle.components.items() if not is_noticed(name, component))


def _try(answer: Callable[[Path], Any], sample: Path) -> Any:
    """The answer, or None where there is none: pipelines may well fail with outputs that make no sense."""
    try:
        return answer(sample)
    except (BundlerError, EndlessError):
        return None


def _reverse(value: Any) -> Any:
    return _map_arrays(np.flip, value)


def _negate(value: Any) -> Any:
    return _map_arrays(lambda array: np.logical_not(array) if array.dtype.kind == "b" else _minus(array), value)


def _minus(array: Any) -> Any:
    return -array if array.dtype.kind in "ifc" else array


def _clear(value: Any) -> Any:
    return _map_arrays(np.zeros_like, value)


def _map_arrays(alter: Alter, value: Any) -> Any:
    """Of a sequence each element; what holds no numbers or text stays."""
    if isinstance(value, list):
        return [_map_arrays(alter, item) for item in value]
    return alter(value) if isinstance(value, np.ndarray) else value
