"""Accuracy figures of an output against its reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Tolerance = dict[str, Any]
"""Limits by figure, as `runtime.json` has them; None is no limit."""

NEGLIGIBLE = 1e-6
"""Errors up to here are rounding: for an output that small, ratios of signal to noise say nothing."""

LAST_STEP = 2.0**-23
"""The last step of a 32-bit float, as a share of the greatest magnitude: errors up to there are rounding everywhere."""

LOW = 0.1
"""The share of samples (at least one of several) that may stay below `low_sqnr_db`."""

MOST_CLASSES = 65_536
"""Up to this length of the last axis, rows are compared by the index of their maximum."""


TIE = 1e-6
"""Scores that differ by less, relative to their magnitude, tie: rounding decides which is higher."""


class Reference:
    """Figures of one output's recorded values, from the golden set's index: the energy of all samples around
    their mean and that of each sample (in the output's own unit, squared), the greatest magnitude of the quietest
    sample, whether integers count as numbers, and why nothing can be judged (empty where it can).
    """

    __slots__ = ("quantity", "quiet_peak", "signal", "signals", "unjudged")

    def __init__(self, known: dict[str, Any] | None = None) -> None:
        known = known or {}
        self.signal: float | None = known.get("signal")
        self.signals: list[float] = known.get("signals", [])
        self.quiet_peak: float = known.get("quiet_peak", 0.0)
        self.quantity: bool = known.get("quantity", False)
        self.unjudged: str = known.get("unjudged", "")


class OutputFigures:
    """One output over all samples. Errors are in the output's own unit.

    `sqnr_db` holds the noise against the signal without its mean; `worst_sqnr_db` is that of the worst sample,
    `low_sqnr_db` what all samples but a tenth reach. All are None without noise or without a signal, `cosine` when a
    norm is zero, `top1_agreement` where the output has no rows of scores. `agreement` is the share of equal integers,
    booleans and strings, None where there are none. `mismatch` says why outputs could not be compared.
    """

    def __init__(self, name: str, reference: Reference | None = None) -> None:
        self.name = name
        self.reference = reference or Reference()
        self.equal = True
        self.mismatch: str | None = None
        self.max_absolute = 0.0
        self.max_relative = 0.0
        self.excess = 0
        self._sum_absolute = 0.0
        self._count = 0
        self._noises: list[float] = []
        self._power = 0.0
        self._energy = 0.0
        self._dot = 0.0
        self._same_top = 0
        self._tops = 0
        self._exact = 0
        self._exact_agreed = 0

    def add(self, actual: Any, reference: Any, tolerance: Tolerance, where: str) -> None:
        """Add one sample's value; `where` names the sample in a mismatch."""
        self._noises.append(0.0)
        problem = self._add(actual, reference, tolerance)
        if problem is not None:
            self.refuse(f"{where}: {problem}")

    def refuse(self, mismatch: str) -> None:
        """Record the first reason why this output could not be compared."""
        self.equal = False
        self.mismatch = self.mismatch or mismatch

    @property
    def mean_absolute(self) -> float:
        """Mean absolute error over all elements."""
        return self._sum_absolute / self._count if self._count else 0.0

    @property
    def sqnr_db(self) -> float | None:
        """Signal to noise over all samples, in decibels."""
        return _decibels(self.reference.signal or 0.0, float(np.sum(self._noises)))

    @property
    def low_sqnr_db(self) -> float | None:
        """Signal to noise that all samples reach but for a tenth, and at least one of several."""
        ordered = sorted(math.inf if ratio is None else ratio for ratio in self._ratios())
        if not ordered:
            return None
        found = ordered[min(len(ordered) - 1, max(1, math.floor(LOW * len(ordered))))]
        return None if math.isinf(found) else found

    @property
    def worst_sqnr_db(self) -> float | None:
        """Signal to noise of the worst sample."""
        return min((ratio for ratio in self._ratios() if ratio is not None), default=None)

    def _ratios(self) -> list[float | None]:
        return [_decibels(*pair) for pair in zip(self.reference.signals, self._noises, strict=False)]

    @property
    def cosine(self) -> float | None:
        """Cosine similarity."""
        norms = math.sqrt(self._power) * math.sqrt(self._energy)
        return self._dot / norms if norms else None

    @property
    def top1_agreement(self) -> float | None:
        """Share of rows whose highest score is at the same position."""
        return self._same_top / self._tops if self._tops else None

    @property
    def agreement(self) -> float | None:
        """Share of equal integers, booleans and strings."""
        return self._exact_agreed / self._exact if self._exact else None

    def find_fault(self, tolerance: Tolerance) -> str | None:
        """Why this output is out of tolerance; None when it is within. An empty tolerance checks type and shape."""
        if not tolerance.get("judged", True):
            return None
        if self.mismatch is not None or not tolerance:
            return self.mismatch
        if self.excess:
            share = f"{self.excess} of {self._count} elements are out of tolerance"
            return f"{share}, the largest error is {self.max_absolute:.3g}"
        return self._find_disagreement(tolerance) or self._find_noise(tolerance)

    def _find_disagreement(self, tolerance: Tolerance) -> str | None:
        least = tolerance.get("agreement")
        if self.agreement is not None and self.agreement < (1.0 if least is None else least):
            promise = "" if least is None else f", at least a share of {least:.6g} must be equal"
            return f"{self._exact - self._exact_agreed} of {self._exact} values differ{promise}"
        return None

    def _find_noise(self, tolerance: Tolerance) -> str | None:
        if self.equal:
            return None
        ratios = () if self._is_rounding(tolerance) else ("sqnr_db", "low_sqnr_db", "worst_sqnr_db", "cosine")
        for name in (*ratios, "top1_agreement"):
            found, least = getattr(self, name), tolerance.get(name)
            if least is not None and found is not None and found < least:
                return f"{name} {found:.6g} (min {least:.6g})"
        if ratios and self._is_unmeasured(tolerance):
            return f"its largest error is {self.max_absolute:.3g}, and the reference has no signal to compare it with"
        return None

    def _is_rounding(self, tolerance: Tolerance) -> bool:
        absolute, relative = tolerance.get("absolute"), tolerance.get("relative")
        quiet = self.reference.quiet_peak
        rounding = max(NEGLIGIBLE, LAST_STEP * quiet)
        if absolute is not None and relative is not None:
            rounding = min(rounding, absolute + relative * quiet)
        return self.max_absolute <= rounding

    def _is_unmeasured(self, tolerance: Tolerance) -> bool:
        """Whether a ratio is required that cannot be measured."""
        return tolerance.get("sqnr_db") is not None and self.reference.signal is None and self.max_absolute > 0

    def to_json(self, *, judged: bool = True) -> dict[str, Any]:
        """The figures as `self-test --json` prints them: all None where the output could not be `judged`,
        because they say nothing then.
        """
        names = (
            "name",
            "equal",
            "max_absolute",
            "mean_absolute",
            "max_relative",
            "cosine",
            "sqnr_db",
            "low_sqnr_db",
            "worst_sqnr_db",
            "top1_agreement",
            "agreement",
            "mismatch",
        )
        given = names if judged else ("name", "mismatch")
        return {name: getattr(self, name) if name in given else None for name in names}

    def _add(self, actual: Any, reference: Any, tolerance: Tolerance) -> str | None:
        if isinstance(reference, list):
            return self._add_sequence(actual, reference, tolerance)
        if isinstance(reference, dict):
            return self._add_map(actual, reference, tolerance)
        if reference is None or actual is None:
            return None if actual is reference else f"{_describe(actual)} instead of {_describe(reference)}"
        return self._add_array(np.asarray(actual), np.asarray(reference), tolerance)

    def _add_sequence(self, actual: Any, reference: list[Any], tolerance: Tolerance) -> str | None:
        if not isinstance(actual, list) or len(actual) != len(reference):
            return f"{_describe(actual)} instead of a sequence of {len(reference)}"
        problems = [self._add(*pair, tolerance) for pair in zip(actual, reference, strict=True)]
        return next((problem for problem in problems if problem is not None), None)

    def _add_map(self, actual: Any, reference: dict[Any, Any], tolerance: Tolerance) -> str | None:
        if not isinstance(actual, dict) or actual.keys() != reference.keys():
            return f"{_describe(actual)} instead of a map with {len(reference)} keys, or with other keys"
        keys = list(reference)
        return self._add_array(
            np.asarray([actual[key] for key in keys]), np.asarray([reference[key] for key in keys]), tolerance
        )

    def _add_array(self, actual: np.ndarray, reference: np.ndarray, tolerance: Tolerance) -> str | None:
        if actual.shape != reference.shape:
            return f"shape {list(actual.shape)} instead of {list(reference.shape)}"
        if reference.dtype.kind in "OUST":
            return self._add_exact(actual.astype(str), reference.astype(str))
        if actual.dtype != reference.dtype:
            return f"type {actual.dtype} instead of {reference.dtype}"
        if reference.dtype.kind == "c":
            return self._add_array(_as_floats(actual), _as_floats(reference), tolerance)
        if reference.dtype.kind in "biu":
            if self.reference.quantity:
                self._add_finite(_as_double(actual), _as_double(reference), tolerance)
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
            return "NaN is at other positions"
        finite = np.isfinite(reference)
        if (
            not np.array_equal(actual[~finite], reference[~finite], equal_nan=True)
            or not np.isfinite(actual[finite]).all()
        ):
            return "infinity is at other positions"
        self._add_finite(actual[finite], reference[finite], tolerance)
        return None

    def _add_finite(self, actual: np.ndarray, reference: np.ndarray, tolerance: Tolerance) -> None:
        if not reference.size:
            return
        error, size = np.abs(actual - reference), np.abs(reference)
        self.equal = self.equal and not error.any()
        if tolerance.get("absolute") is not None and tolerance.get("relative") is not None:
            self.excess += int((error > tolerance["absolute"] + tolerance["relative"] * size).sum())
        self.max_absolute = max(self.max_absolute, float(error.max()))
        ratios = error[size > 0] / size[size > 0]
        self.max_relative = max(self.max_relative, float(ratios.max(initial=0.0)))
        self._sum_absolute += float(error.sum())
        self._count += reference.size
        self._noises[-1] += float((error * error).sum())
        self._power += float((reference * reference).sum())
        self._energy += float((actual * actual).sum())
        self._dot += float((actual * reference).sum())

    def _add_top(self, actual: np.ndarray, reference: np.ndarray) -> None:
        """Rows of at least two floating-point numbers along the last axis; NaN is never the highest."""
        if reference.ndim < 2 or not 2 <= reference.shape[-1] <= MOST_CLASSES or reference.dtype.kind != "f":  # noqa: PLR2004
            return
        rows = _as_double(reference).reshape(-1, reference.shape[-1])
        every = np.arange(len(rows))
        best, found = (rows[every, _best_places(scores)] for scores in (reference, actual))
        near = TIE * np.abs(np.where(np.isfinite(best), best, 0))
        self._same_top += int((np.isnan(best) | (found >= best - near)).sum())
        self._tops += len(rows)


def _best_places(scores: np.ndarray) -> np.ndarray:
    rows = scores.reshape(-1, scores.shape[-1])
    best: np.ndarray = np.argmax(np.where(np.isnan(rows), -np.inf, rows), axis=1)
    return best


def _decibels(signal: float, noise: float) -> float | None:
    return 10 * (math.log10(signal) - math.log10(noise)) if signal and noise else None


_WORSE: dict[str, Callable[..., Any]] = {
    "equal": min,
    "max_absolute": max,
    "mean_absolute": max,
    "max_relative": max,
    "cosine": min,
    "sqnr_db": min,
    "low_sqnr_db": min,
    "worst_sqnr_db": min,
    "top1_agreement": min,
    "agreement": min,
}
"""The worse of two values of a figure."""


def take_worse(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The worse of each figure of one output (`OutputFigures.to_json`) from two runs. None is no figure."""
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
