"""How far outputs are from their reference, and whether that meets a gate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from bundler.model.runtime import Gate, Tolerance
from bundler.workbench.elements import to_wide
from bundler.workbench.equality import is_float, same_value
from bundler.workbench.value_files import Value

_SCORES_RANK: Final = 2
_NEGLIGIBLE: Final = 1e-6
"""Errors up to here are rounding, whatever their ratio to an output that is as small."""


@dataclass(slots=True)
class Figures:
    """Gathers what one output shows, sample by sample. `excess` is the greatest error above what `tolerance` allows."""

    tolerance: Tolerance
    comparable: bool = True
    max_absolute: float = 0.0
    excess: float = 0.0
    product: float = 0.0
    powers: tuple[float, float] = (0.0, 0.0)
    noise: float = 0.0
    rows: int = 0
    rows_agreed: int = 0
    values: int = 0
    values_equal: int = 0

    def add(self, reference: Value, actual: Value) -> None:
        """Take in the output of one sample; what is no tensor must be equal."""
        if not isinstance(reference, np.ndarray) or not isinstance(actual, np.ndarray):
            self.comparable &= same_value(reference, actual)
        elif reference.shape != actual.shape:
            self.comparable = False
        elif is_float(reference) and is_float(actual):
            self._add_numbers(to_wide(reference), to_wide(actual))
        else:
            self.values += reference.size
            self.values_equal += int((reference == actual).sum())

    def _add_numbers(self, reference: np.ndarray, actual: np.ndarray) -> None:
        finite = np.isfinite(reference)
        same = np.array_equal(reference[~finite], actual[~finite], equal_nan=True)
        if not (same and np.isfinite(actual[finite]).all()):
            self.comparable = False
            return
        if reference.ndim == _SCORES_RANK and reference.shape[1] > 1:
            self.rows += len(reference)
            self.rows_agreed += int((reference.argmax(axis=1) == actual.argmax(axis=1)).sum())
        if finite.any():
            self._add_finite(reference[finite], actual[finite])

    def _add_finite(self, reference: np.ndarray, actual: np.ndarray) -> None:
        error = np.abs(actual - reference)
        self.max_absolute = max(self.max_absolute, float(error.max()))
        if self.tolerance.absolute is not None and self.tolerance.relative is not None:
            allowed = self.tolerance.absolute + self.tolerance.relative * np.abs(reference)
            self.excess = max(self.excess, float((error - allowed).max()))
        self.product += float((actual * reference.conj()).real.sum())
        powers = (float(np.square(np.abs(values)).sum()) for values in (reference, actual))
        self.powers = tuple(old + new for old, new in zip(self.powers, powers, strict=True))  # type: ignore[assignment]
        self.noise += float(np.square(error).sum())

    @property
    def sqnr_db(self) -> float | None:
        """Signal to noise; None where there is no noise, or no signal."""
        if not self.noise or not self.powers[0]:
            return None
        return 10 * (math.log10(self.powers[0]) - math.log10(self.noise))

    @property
    def cosine(self) -> float | None:
        """Cosine similarity; None where a norm is zero."""
        norm = math.sqrt(self.powers[0]) * math.sqrt(self.powers[1])
        return max(-1.0, min(1.0, self.product / norm)) if norm else None

    def holds(self) -> bool:
        """Whether the tolerance is met."""
        if not self.tolerance.judged:
            return True
        if not self.comparable:
            return False
        agreed = self.rows_agreed / self.rows if self.rows else None
        equal = self.values_equal / self.values if self.values else None
        limits = [
            (agreed, self.tolerance.top1_agreement),
            (equal, 1.0 if self.tolerance.agreement is None else self.tolerance.agreement),
        ]
        if self.max_absolute > _NEGLIGIBLE:
            limits += [(self.sqnr_db, self.tolerance.sqnr_db), (self.cosine, self.tolerance.cosine)]
        return self.excess <= 0 and all(least is None or found is None or found >= least for found, least in limits)

    def facts(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {
            "comparable": self.comparable,
            "max_absolute": self.max_absolute,
            "sqnr_db": self.sqnr_db,
            "cosine": self.cosine,
            "top1_agreement": self.rows_agreed / self.rows if self.rows else None,
        }


@dataclass(slots=True)
class Judgement:
    """All outputs of a model against a gate."""

    gate: Gate
    outputs: dict[str, Figures] = field(default_factory=dict)

    def add(self, reference: Mapping[str, Value], actual: Mapping[str, Value]) -> None:
        """Take in one sample."""
        for name, value in reference.items():
            self.outputs.setdefault(name, Figures(self.gate.of(name))).add(value, actual[name])

    def holds(self) -> bool:
        """Whether every output meets the gate."""
        return all(figures.holds() for figures in self.outputs.values())

    def facts(self) -> dict[str, Any]:
        """The figures of every output."""
        return {name: figures.facts() for name, figures in self.outputs.items()}
