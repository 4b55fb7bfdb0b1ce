"""How far an output is from its reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Tolerance = dict[str, Any]
"""Limits by figure, as `runtime.json` has them; None is no limit."""

NEGLIGIBLE = 1e-6
"""Errors up to here are rounding: where a whole output is that small, ratios of signal to noise say nothing."""


class OutputFigures:
    """One output over all samples. Errors are in the output's own unit.

    `sqnr_db` is None when all is equal to the bit or the reference is all zero, `cosine` when a norm is zero,
    `top1_agreement` where the output is no vector of scores. `agreement` is the share of equal integers, booleans and
    strings, None where there are none; of them nothing else is measured. `mismatch` says why outputs could not be
    compared.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.equal = True
        self.mismatch: str | None = None
        self.max_absolute = 0.0
        self.max_relative = 0.0
        self.excess = 0
        self._sum_absolute = 0.0
        self._count = 0
        self._noise = 0.0
        self._signal = 0.0
        self._energy = 0.0
        self._dot = 0.0
        self._same_top = 0
        self._tops = 0
        self._exact = 0
        self._exact_agreed = 0

    def add(self, actual: Any, reference: Any, tolerance: Tolerance, where: str) -> None:
        """Take one sample's value in; `where` names the sample in a mismatch."""
        problem = self._add(actual, reference, tolerance)
        if problem is not None:
            self.equal = False
            self.mismatch = self.mismatch or f"{where}: {problem}"

    @property
    def mean_absolute(self) -> float:
        """Mean absolute error over all elements."""
        return self._sum_absolute / self._count if self._count else 0.0

    @property
    def sqnr_db(self) -> float | None:
        """Signal to noise in decibels."""
        return 10 * math.log10(self._signal / self._noise) if self._signal and self._noise else None

    @property
    def cosine(self) -> float | None:
        """Cosine similarity."""
        norms = math.sqrt(self._signal) * math.sqrt(self._energy)
        return self._dot / norms if norms else None

    @property
    def top1_agreement(self) -> float | None:
        """Share of rows whose highest score stands at the same place."""
        return self._same_top / self._tops if self._tops else None

    @property
    def agreement(self) -> float | None:
        """Share of equal integers, booleans and strings."""
        return self._exact_agreed / self._exact if self._exact else None

    def find_fault(self, tolerance: Tolerance) -> str | None:
        """Why this output is out of tolerance; None when it is within. An empty tolerance promises type and shape."""
        if not tolerance.get("judged", True):
            return None
        if self.mismatch is not None or not tolerance:
            return self.mismatch
        if self.excess:
            return f"{self.excess} of {self._count} elements are off, the worst by {self.max_absolute:.3g}"
        return self._find_disagreement(tolerance) or self._find_noise(tolerance)

    def _find_disagreement(self, tolerance: Tolerance) -> str | None:
        least = tolerance.get("agreement")
        if self.agreement is not None and self.agreement < (1.0 if least is None else least):
            promise = "" if least is None else f", at least {least:.6g} of them equal was promised"
            return f"{self._exact - self._exact_agreed} of {self._exact} values differ{promise}"
        return None

    def _find_noise(self, tolerance: Tolerance) -> str | None:
        absolute = tolerance.get("absolute")
        rounding = self.max_absolute <= (NEGLIGIBLE if absolute is None else min(NEGLIGIBLE, absolute))
        for name in ("top1_agreement",) if rounding else ("sqnr_db", "cosine", "top1_agreement"):
            found, least = getattr(self, name), tolerance.get(name)
            if not self.equal and found is not None and least is not None and found < least:
                return f"{name} is {found:.6g}, at least {least:.6g} was promised"
        return None

    def to_json(self) -> dict[str, Any]:
        """The figures as `self-test --json` prints them."""
        names = (
            "name",
            "equal",
            "max_absolute",
            "mean_absolute",
            "max_relative",
            "cosine",
            "sqnr_db",
            "top1_agreement",
            "agreement",
            "mismatch",
        )
        return {name: getattr(self, name) for name in names}

    def _add(self, actual: Any, reference: Any, tolerance: Tolerance) -> str | None:
        if isinstance(reference, list):
            return self._add_sequence(actual, reference, tolerance)
        if isinstance(reference, dict):
            return self._add_map(actual, reference, tolerance)
        if reference is None or actual is None:
            return None if actual is reference else f"{_describe(actual)} in place of {_describe(reference)}"
        return self._add_array(np.asarray(actual), np.asarray(reference), tolerance)

    def _add_sequence(self, actual: Any, reference: list[Any], tolerance: Tolerance) -> str | None:
        if not isinstance(actual, list) or len(actual) != len(reference):
            return f"{_describe(actual)} in place of a sequence of {len(reference)}"
        problems = [self._add(*pair, tolerance) for pair in zip(actual, reference, strict=True)]
        return next((problem for problem in problems if problem is not None), None)

    def _add_map(self, actual: Any, reference: dict[Any, Any], tolerance: Tolerance) -> str | None:
        if not isinstance(actual, dict) or actual.keys() != reference.keys():
            return f"{_describe(actual)} in place of a map with {len(reference)} keys, or with other keys"
        keys = list(reference)
        return self._add_array(
            np.asarray([actual[key] for key in keys]), np.asarray([reference[key] for key in keys]), tolerance
        )

    def _add_array(self, actual: np.ndarray, reference: np.ndarray, tolerance: Tolerance) -> str | None:
        if actual.shape != reference.shape:
            return f"shape {list(actual.shape)} in place of {list(reference.shape)}"
        if reference.dtype.kind in "OUST":
            return self._add_exact(actual.astype(str), reference.astype(str))
        if actual.dtype != reference.dtype:
            return f"type {actual.dtype} in place of {reference.dtype}"
        if reference.dtype.kind == "c":
            return self._add_array(_as_floats(actual), _as_floats(reference), tolerance)
        if reference.dtype.kind in "biu":
            return self._add_exact(actual, reference)
        if actual.tobytes() == reference.tobytes():
            actual = reference
        self._add_top(actual, reference)
        return self._add_numbers(_as_double(actual), _as_double(reference), tolerance)

    def _add_exact(self, actual: np.ndarray, reference: np.ndarray) -> str | None:
        agreed = int((actual == reference).sum())
        self.equal = self.equal and agreed == reference.size
        self._exact += reference.size
        self._exact_agreed += agreed
        return None

    def _add_numbers(self, actual: np.ndarray, reference: np.ndarray, tolerance: Tolerance) -> str | None:
        if not np.array_equal(np.isnan(actual), np.isnan(reference)):
            return "NaN stands at other places"
        finite = np.isfinite(reference)
        if (
            not np.array_equal(actual[~finite], reference[~finite], equal_nan=True)
            or not np.isfinite(actual[finite]).all()
        ):
            return "infinity stands at other places"
        self._add_finite(actual[finite], reference[finite], tolerance)
        return None

    def _add_finite(self, actual: np.ndarray, reference: np.ndarray, tolerance: Tolerance) -> None:
        if not reference.size:
            return
        error, size = np.abs(actual - reference), np.abs(reference)
        self.equal = self.equal and not error.any()
        if tolerance["absolute"] is not None and tolerance["relative"] is not None:
            self.excess += int((error > tolerance["absolute"] + tolerance["relative"] * size).sum())
        self.max_absolute = max(self.max_absolute, float(error.max()))
        ratios = error[size > 0] / size[size > 0]
        self.max_relative = max(self.max_relative, float(ratios.max(initial=0.0)))
        self._sum_absolute += float(error.sum())
        self._count += reference.size
        self._noise += float((error * error).sum())
        self._signal += float((reference * reference).sum())
        self._energy += float((actual * actual).sum())
        self._dot += float((actual * reference).sum())

    def _add_top(self, actual: np.ndarray, reference: np.ndarray) -> None:
        """Rows of at least two floating-point scores along the last axis of a matrix."""
        if reference.ndim != 2 or reference.shape[-1] < 2 or reference.dtype.kind != "f":  # noqa: PLR2004
            return
        same = np.argmax(actual, axis=-1) == np.argmax(reference, axis=-1)
        self._same_top += int(same.sum())
        self._tops += int(same.size)


_WORSE: dict[str, Callable[..., Any]] = {
    "equal": min,
    "max_absolute": max,
    "mean_absolute": max,
    "max_relative": max,
    "cosine": min,
    "sqnr_db": min,
    "top1_agreement": min,
    "agreement": min,
}
"""Of two values of a figure, the worse one."""


def take_worse(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Figures of one output (`OutputFigures.to_json`) from two runs: of each the worse. None is no figure."""
    worse = {"name": first["name"], "mismatch": first["mismatch"] or second["mismatch"]}
    for name, choose in _WORSE.items():
        found = [figures[name] for figures in (first, second) if figures.get(name) is not None]
        worse[name] = choose(found) if found else None
    return worse


def _as_double(values: np.ndarray) -> np.ndarray:
    return np.atleast_1d(values).astype(np.float64)


def _as_floats(values: np.ndarray) -> np.ndarray:
    return np.stack([values.real, values.imag])


def _describe(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
