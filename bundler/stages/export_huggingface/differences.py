"""Compare two sets of outputs. Requires NumPy only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from bundler.model.errors import StageError

Arrays = dict[str, np.ndarray]

LIMIT: Final = 1e-3
"""The largest difference that counts as rounding, as a share of an output's largest value."""
HINT: Final = "try another opset (`?opset=17`), or export the model yourself and give the .onnx file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The largest difference of one output over all trials, absolute and as a share of the output's largest value."""

    max_absolute: float
    max_relative: float


def differences(found: Arrays, expected: Arrays) -> dict[str, Difference]:
    """By output. Raises `StageError` for another shape, and for NaN or infinity where PyTorch has a number."""
    return {name: _difference(name, found[name], expected[name]) for name in found if name in expected}


def _difference(name: str, found: np.ndarray, expected: np.ndarray) -> Difference:
    if found.shape != expected.shape:
        details = (f"PyTorch: {list(expected.shape)}", f"export: {list(found.shape)}")
        raise StageError(f"the export outputs {name!r} in another shape than PyTorch", details=details, hint=HINT)
    one, other = found.astype(np.float64), expected.astype(np.float64)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):  # infinite on both sides: the same
        gap = np.where(same, 0.0, np.abs(one - other))
    if not np.isfinite(gap).all():
        raise StageError(f"the export outputs NaN or infinity in {name!r} where PyTorch does not", hint=HINT)
    scale = float(np.abs(other[np.isfinite(other)]).max(initial=0.0))
    largest = float(gap.max(initial=0.0))
    return Difference(max_absolute=largest, max_relative=largest / max(scale, 1e-6))


def join_differences(all_of_them: dict[str, Difference], found: Mapping[str, Difference]) -> None:
    """Keep the larger of each in `all_of_them`."""
    for name, item in found.items():
        before = all_of_them.get(name, item)
        all_of_them[name] = Difference(
            max_absolute=max(item.max_absolute, before.max_absolute),
            max_relative=max(item.max_relative, before.max_relative),
        )
