"""Error figures of one output against its reference, collected sample by sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bundler.model.reference import ReferenceFigures
from bundler.model.results import OutputComparison
from bundler.onnxkit.elements import element_of_array, to_wide
from bundler.onnxkit.equality import is_float, same_value
from bundler.onnxkit.score_rows import count_agreeing, has_rows
from bundler.onnxkit.trivial_outputs import TrivialOutputs, decibels
from bundler.onnxkit.value_files import Value

_MAX_SHOWN = 80
"""Maximum number of characters of a model's value in a message."""
Point = tuple[float, float]
"""(magnitude of the reference, absolute error) of one element."""
_BINS = 1024
"""Bins of the reference's magnitude. Of 265,000 elements with unrelated errors a few hundred are left to be sorted."""
LOW_SHARE = 0.1
"""The share of samples, at least one of several, that may be below the ratio that all others must reach."""


@dataclass(slots=True)
class SampleErrors:
    """The errors of one sample of an output."""

    name: str
    equal: bool = True
    mismatched: bool = False
    differing: int = 0
    noise: float = 0.0


@dataclass(slots=True)
class Tally:
    """Accumulates the errors of one output. Of an output that is not `stable` only type and shape are compared. The
    integers of a `quantity` are measured as numbers as well.
    """

    name: str
    stable: bool = True
    quantity: bool = False
    equal: bool = True
    mismatch: str | None = None
    count: int = 0
    max_absolute: float = 0.0
    sum_absolute: float = 0.0
    max_relative: float = 0.0
    product: float = 0.0
    actual_power: float = 0.0
    reference_power: float = 0.0
    rows: int = 0
    rows_agreed: int = 0
    exact: int = 0
    exact_agreed: int = 0
    difference: str = ""
    samples: list[SampleErrors] = field(default_factory=list)
    hull: list[Point] = field(default_factory=list)
    trivial: TrivialOutputs = field(default_factory=TrivialOutputs)

    def reject(self, reason: str) -> None:
        """Record the first reason why the output cannot be compared."""
        self.equal = False
        self.mismatch = self.mismatch or reason
        if self.samples:
            self.samples[-1].mismatched = True

    def add(self, reference: Value, actual: Value, sample: str = "") -> None:
        """Add the output of one sample."""
        found = SampleErrors(name=sample, equal=same_value(reference, actual))
        self.samples.append(found)
        self.equal = self.equal and found.equal
        self._add_value(reference, actual, "")

    def _add_value(self, reference: Value, actual: Value, where: str) -> None:
        if isinstance(reference, np.ndarray) and isinstance(actual, np.ndarray):
            self._add_array(reference, actual, where)
        elif isinstance(reference, list) and isinstance(actual, list):
            if len(reference) != len(actual):
                self.reject(f"{where}has {len(actual)} items instead of {len(reference)}")
            for index, (one, other) in enumerate(zip(reference, actual, strict=False)):
                self._add_value(one, other, f"item {index}: {where}")
        elif isinstance(reference, dict) and isinstance(actual, dict):
            if list(reference) != list(actual):
                self.reject(f"{where}has the keys {_brief(actual)} instead of {_brief(reference)}")
            else:
                one, other = np.array(list(reference.values())), np.array(list(actual.values()))
                self._add_array(one, other, where)
        elif reference is not None or actual is not None:
            self.reject(f"{where}is {_kind(actual)} instead of {_kind(reference)}")

    def _add_array(self, reference: np.ndarray, actual: np.ndarray, where: str) -> None:
        expected, got = _describe(reference), _describe(actual)
        if expected != got:
            self.reject(f"{where}is {got} instead of {expected}")
        elif not self.stable:
            return
        elif is_float(reference):
            self._add_numbers(to_wide(reference), to_wide(actual), where)
        else:
            self._add_exact(reference, actual, where)
            if self.quantity and reference.dtype.kind in "iu":
                numbers, others = to_wide(reference), to_wide(actual)
                self.trivial.add(numbers, others - numbers)
                self._add_finite(numbers.ravel(), others.ravel())

    def _add_exact(self, reference: np.ndarray, actual: np.ndarray, where: str) -> None:
        different = np.argwhere(np.asarray(reference != actual))
        self.exact += reference.size
        self.exact_agreed += reference.size - len(different)
        self.samples[-1].differing += len(different)
        if len(different) and not self.difference:
            place = tuple(int(index) for index in different[0])
            wanted, got = str(reference[place])[:_MAX_SHOWN], str(actual[place])[:_MAX_SHOWN]
            self.difference = (
                f"{where}{len(different)} of {reference.size} values differ, the first at {list(place)}: "
                f"{got!r} instead of {wanted!r}"
            )

    def _add_numbers(self, reference: np.ndarray, actual: np.ndarray, where: str) -> None:
        finite = np.isfinite(reference)
        same = np.array_equal(reference[~finite], actual[~finite], equal_nan=True)
        if not same or not np.isfinite(actual[finite]).all():
            self.reject(f"{where}NaN or infinity at different places than in the reference")
            return
        if has_rows(reference):
            rows, agreed = count_agreeing(reference, actual)
            self.rows += rows
            self.rows_agreed += agreed
        if reference.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                self.trivial.add(reference, actual - reference)
        self._add_finite(reference[finite], actual[finite])

    def _add_finite(self, reference: np.ndarray, actual: np.ndarray) -> None:
        if not reference.size:
            return
        error, magnitude = np.abs(actual - reference), np.abs(reference)
        self.count += error.size
        self.max_absolute = max(self.max_absolute, float(error.max()))
        self.sum_absolute += float(error.sum())
        nonzero = magnitude > 0
        if nonzero.any():
            self.max_relative = max(self.max_relative, float((error[nonzero] / magnitude[nonzero]).max()))
        self.product += float((actual * reference.conj()).real.sum())
        self.actual_power += float(np.square(np.abs(actual)).sum())
        self.reference_power += float(np.square(magnitude).sum())
        self.samples[-1].noise += float(np.square(error).sum())
        self.hull = upper_left_hull(self.hull, magnitude, error)

    def result(self, reference: ReferenceFigures | None = None, *, by_step: bool = False) -> OutputComparison:
        """The figures so far, with the figures of the recorded outputs themselves (None: not known); `by_step` adds
        the ratio of each sample.
        """
        known = reference or ReferenceFigures(name=self.name)
        ratios = [decibels(signal, one.noise) for signal, one in zip(known.signals, self.samples, strict=False)]
        return OutputComparison(
            name=self.name,
            equal=self.equal,
            max_absolute=self.max_absolute,
            mean_absolute=self.sum_absolute / self.count if self.count else 0.0,
            max_relative=self.max_relative,
            cosine=self._cosine(),
            sqnr_db=decibels(known.signal or 0.0, float(np.sum([one.noise for one in self.samples]))),
            low_sqnr_db=_low(ratios),
            typical_sqnr_db=self.trivial.ratio_db(),
            worst_sqnr_db=min((ratio for ratio in ratios if ratio is not None), default=None),
            top1_agreement=self.rows_agreed / self.rows if self.rows else None,
            mismatch=self.mismatch,
            envelope=tuple(self.hull),
            agreement=self.exact_agreed / self.exact if self.exact else None,
            difference=self.difference,
            worst_sample=self._worst_sample(known),
            reference=known,
            step_sqnr_db=tuple(ratios) if by_step else (),
        )

    def _worst_sample(self, known: ReferenceFigures) -> str:
        """Values that differ rank as worse than any noise, and incomparable outputs as worse still."""

        def rank(place: int) -> tuple[float, ...]:
            one = self.samples[place]
            signal = known.signals[place] if place < len(known.signals) else 0.0
            return float(one.mismatched), float(one.differing), one.noise / signal if signal else one.noise

        places = [place for place, one in enumerate(self.samples) if not one.equal]
        return self.samples[max(places, key=rank)].name if places else ""

    def _cosine(self) -> float | None:
        norm = math.sqrt(self.actual_power) * math.sqrt(self.reference_power)
        return max(-1.0, min(1.0, self.product / norm)) if norm else None


def _low(ratios: Sequence[float | None]) -> float | None:
    """The ratio that all samples but a tenth, and at least one of several, reach. None is without noise."""
    ordered = sorted(math.inf if ratio is None else ratio for ratio in ratios)
    if not ordered:
        return None
    found = ordered[min(len(ordered) - 1, max(1, math.floor(LOW_SHARE * len(ordered))))]
    return None if math.isinf(found) else found


def upper_left_hull(known: list[Point], magnitude: np.ndarray, error: np.ndarray) -> list[Point]:
    """The few elements that decide whether every |error| <= absolute + relative * |reference|, for any two limits.

    Those are the corners of the convex hull towards small references and large errors, by increasing reference. An
    omitted corner can never be the worst element, so a gate judges from them exactly, and a new limit needs no new run.
    """
    if known:
        magnitude = np.concatenate([magnitude, [point[0] for point in known]])
        error = np.concatenate([error, [point[1] for point in known]])
    wrong = error > 0
    magnitude, error = magnitude[wrong], error[wrong]
    if not error.size:
        return []
    near = magnitude <= magnitude[error == error.max()].min()
    magnitude, error = _drop_hidden(magnitude[near], error[near])
    order = np.lexsort((-error, magnitude))
    magnitude, error = magnitude[order], error[order]
    rising = np.concatenate([[True], error[1:] > np.maximum.accumulate(error)[:-1]])
    return _convex(list(zip(magnitude[rising].tolist(), error[rising].tolist(), strict=True)))


def _drop_hidden(magnitude: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both without most elements that cannot be a corner, so that few are sorted.

    An element is hidden when one of a smaller reference has an error at least as large. Elements are compared with
    those of lower bins of the reference, whose order rounding keeps.
    """
    limit = float(magnitude.max())
    bins = _BINS / limit if limit > 0 else math.inf
    if math.isinf(bins) or math.isinf(limit):
        return magnitude, error
    place = (magnitude * bins).astype(np.intp)
    highest = np.zeros(_BINS + 2, error.dtype)
    np.maximum.at(highest, place + 1, error)
    seen = error > np.maximum.accumulate(highest)[place]
    return magnitude[seen], error[seen]


def _convex(points: list[Point]) -> list[Point]:
    hull: list[Point] = []
    for point in points:
        while len(hull) > 1 and _is_below(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _is_below(left: Point, middle: Point, right: Point) -> bool:
    """Whether `middle` is on or below the line from `left` to `right`."""
    return (middle[1] - left[1]) * (right[0] - left[0]) <= (right[1] - left[1]) * (middle[0] - left[0])


def _describe(array: np.ndarray) -> str:
    return f"{element_of_array(array).name}{list(array.shape)}"


def _kind(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return "a tensor"
    return {list: "a sequence", dict: "a map", type(None): "empty"}.get(type(value), type(value).__name__)


def _brief(mapping: dict[object, object]) -> str:
    text = str(list(mapping))
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"
