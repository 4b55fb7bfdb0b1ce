"""Figures of one output against its reference, gathered sample by sample."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from bundler.model.results import OutputComparison
from bundler.workbench.elements import element_of_array, to_wide
from bundler.workbench.equality import is_float, same_value
from bundler.workbench.value_files import Value

_SCORES_RANK = 2
_SHOWN = 80
"""Characters of a value from the model that a message repeats."""

Point = tuple[float, float]
"""(magnitude of the reference, absolute error) of one element."""


@dataclass(slots=True)
class Tally:
    """Adds up what one output shows. Of an output that is not `stable` only type and shape are looked at."""

    name: str
    stable: bool = True
    equal: bool = True
    mismatch: str | None = None
    count: int = 0
    max_absolute: float = 0.0
    sum_absolute: float = 0.0
    max_relative: float = 0.0
    product: float = 0.0
    actual_power: float = 0.0
    reference_power: float = 0.0
    noise_power: float = 0.0
    rows: int = 0
    rows_agreed: int = 0
    exact: int = 0
    exact_agreed: int = 0
    difference: str = ""
    worst_sample: str = ""
    worst_rank: tuple[float, ...] = ()
    worst_sqnr_db: float | None = None
    hull: list[Point] = field(default_factory=list)

    def reject(self, reason: str) -> None:
        """Note the first reason why the output cannot be compared."""
        self.equal = False
        self.mismatch = self.mismatch or reason

    def add(self, reference: Value, actual: Value, sample: str = "") -> None:
        """Take in the output of one sample."""
        if same_value(reference, actual):
            self._add_value(reference, actual, "")
            return
        self.equal = False
        rejected, noise, power, differing = self.mismatch, self.noise_power, self.reference_power, self._differing
        self._add_value(reference, actual, "")
        noise, power = self.noise_power - noise, self.reference_power - power
        ratio = noise / power if power else math.inf if noise else 0.0
        # Worse than any noise are values that differ, and worse than those what cannot be compared.
        rank = (float(self.mismatch != rejected), float(self._differing - differing), ratio)
        if rank > self.worst_rank:
            self.worst_sample, self.worst_rank = sample, rank
            self.worst_sqnr_db = -10 * math.log10(ratio) if noise and power else None

    @property
    def _differing(self) -> int:
        return self.exact - self.exact_agreed

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

    def _add_exact(self, reference: np.ndarray, actual: np.ndarray, where: str) -> None:
        different = np.argwhere(np.asarray(reference != actual))
        self.exact += reference.size
        self.exact_agreed += reference.size - len(different)
        if len(different) and not self.difference:
            place = tuple(int(index) for index in different[0])
            wanted, got = str(reference[place])[:_SHOWN], str(actual[place])[:_SHOWN]
            self.difference = (
                f"{where}{len(different)} of {reference.size} values differ, the first at {list(place)}: "
                f"{got!r} instead of {wanted!r}"
            )

    def _add_numbers(self, reference: np.ndarray, actual: np.ndarray, where: str) -> None:
        finite = np.isfinite(reference)
        if not _same_pattern(reference, actual, finite):
            self.reject(f"{where}NaN or infinity stand at other places than in the reference")
            return
        if reference.ndim == _SCORES_RANK and reference.shape[1] > 1 and reference.dtype.kind == "f":
            self.rows += len(reference)
            self.rows_agreed += int((_best(reference) == _best(actual)).sum())
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
        self.noise_power += float(np.square(error).sum())
        self.hull = upper_left_hull(self.hull, magnitude, error)

    def result(self) -> OutputComparison:
        """The figures so far."""
        return OutputComparison(
            name=self.name,
            equal=self.equal,
            max_absolute=self.max_absolute,
            mean_absolute=self.sum_absolute / self.count if self.count else 0.0,
            max_relative=self.max_relative,
            cosine=self._cosine(),
            sqnr_db=self._sqnr_db(),
            top1_agreement=self.rows_agreed / self.rows if self.rows else None,
            mismatch=self.mismatch,
            envelope=tuple(self.hull),
            agreement=self.exact_agreed / self.exact if self.exact else None,
            difference=self.difference,
            worst_sample=self.worst_sample,
            worst_sqnr_db=self.worst_sqnr_db,
        )

    def _cosine(self) -> float | None:
        norm = math.sqrt(self.actual_power) * math.sqrt(self.reference_power)
        return max(-1.0, min(1.0, self.product / norm)) if norm else None

    def _sqnr_db(self) -> float | None:
        if not self.noise_power or not self.reference_power:
            return None
        return 10 * (math.log10(self.reference_power) - math.log10(self.noise_power))


def _same_pattern(reference: np.ndarray, actual: np.ndarray, finite: np.ndarray) -> bool:
    return bool(
        np.array_equal(reference[~finite], actual[~finite], equal_nan=True) and np.isfinite(actual[finite]).all()
    )


def _best(scores: np.ndarray) -> np.ndarray:
    """The place of each row's highest score; NaN is never the highest."""
    best: np.ndarray = np.argmax(np.where(np.isnan(scores), -np.inf, scores), axis=1)
    return best


def upper_left_hull(known: list[Point], magnitude: np.ndarray, error: np.ndarray) -> list[Point]:
    """The few elements that decide whether every |error| <= absolute + relative * |reference|, whatever the two limits.

    Those are the corners of the convex hull towards small references and large errors, by growing reference. A corner
    left out can never be the worst element, so a gate judges from them exactly, and a new limit needs no new run.
    """
    if known:
        magnitude = np.concatenate([magnitude, [point[0] for point in known]])
        error = np.concatenate([error, [point[1] for point in known]])
    wrong = error > 0
    magnitude, error = magnitude[wrong], error[wrong]
    if not error.size:
        return []
    near = magnitude <= magnitude[error == error.max()].min()
    magnitude, error = magnitude[near], error[near]
    order = np.lexsort((-error, magnitude))
    magnitude, error = magnitude[order], error[order]
    rising = np.concatenate([[True], error[1:] > np.maximum.accumulate(error)[:-1]])
    return _convex(list(zip(magnitude[rising].tolist(), error[rising].tolist(), strict=True)))


def _convex(points: list[Point]) -> list[Point]:
    hull: list[Point] = []
    for point in points:
        while len(hull) > 1 and _is_below(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _is_below(left: Point, middle: Point, right: Point) -> bool:
    """Whether `middle` lies on or under the line from `left` to `right`."""
    return (middle[1] - left[1]) * (right[0] - left[0]) <= (right[1] - left[1]) * (middle[0] - left[0])


def _describe(array: np.ndarray) -> str:
    return f"{element_of_array(array).name}{list(array.shape)}"


def _kind(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return "a tensor"
    return {list: "a sequence", dict: "a map", type(None): "empty"}.get(type(value), type(value).__name__)


def _brief(mapping: dict[object, object]) -> str:
    text = str(list(mapping))
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
