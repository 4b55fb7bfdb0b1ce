"""Seeded inputs similar to samples that must not be shipped: of their shapes and ranges, and equal to none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from bundler.onnxkit.elements import element_of_array, to_wide
from bundler.onnxkit.seeded_values import WORDS, draw_mask
from bundler.onnxkit.value_files import Value, tensors_of

MAX_CATEGORIES: Final = 16
"""An input with so few different numbers holds categories, and values between them may be meaningless."""
_MAX_MAGNITUDE: Final = 1 << 62
"""Larger numbers are not exact in the recorded figures."""


@dataclass(slots=True)
class _Range:
    """Figures of all numbers of an input: four figures, and the distinct values while they are few."""

    least: float = np.inf
    most: float = -np.inf
    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    categories: set[float] = field(default_factory=set)

    def add(self, numbers: np.ndarray) -> None:
        finite = numbers[np.isfinite(numbers)]
        if not finite.size:
            return
        self.least, self.most = min(self.least, float(finite.min())), max(self.most, float(finite.max()))
        self.count += finite.size
        self.total += float(finite.sum())
        self.squares += float((finite * finite).sum())
        if len(self.categories) <= MAX_CATEGORIES:
            self.categories.update(np.unique(finite)[: MAX_CATEGORIES + 1].tolist())


class Likeness:
    """Collects the ranges of samples, then draws inputs like them; text is drawn from a list of words."""

    def __init__(self) -> None:
        self._ranges: dict[str, _Range] = {}

    def add(self, inputs: Mapping[str, Value]) -> None:
        """Add one sample."""
        for name, value in inputs.items():
            for array in tensors_of(value):
                if element_of_array(array).name != "str":
                    self._ranges.setdefault(name, _Range()).add(np.real(to_wide(array)))

    def draw(self, inputs: Mapping[str, Value], seed: int, index: int) -> dict[str, Value]:
        """Inputs with the shapes of the sample `inputs` and new values."""
        generator = np.random.Generator(np.random.PCG64([seed, index]))
        return {name: self._value(name, value, index, generator) for name, value in inputs.items()}

    def _value(self, name: str, value: Value, index: int, generator: np.random.Generator) -> Any:
        if isinstance(value, list):
            return [self._value(name, item, index, generator) for item in value]
        if isinstance(value, dict):
            words = iter(WORDS * (len(value) // len(WORDS) + 1))
            keys = [next(words) if isinstance(key, str) else key for key in value]
            return dict(zip(keys, generator.standard_normal(len(keys)).tolist(), strict=True))
        return self._tensor(name, value, index, generator) if isinstance(value, np.ndarray) else value

    def _tensor(self, name: str, value: np.ndarray, index: int, generator: np.random.Generator) -> np.ndarray:
        if element_of_array(value).name == "str":
            return np.array(generator.choice(WORDS, size=value.shape), dtype=object)
        known = self._ranges.get(name, _Range())
        if not known.count:
            return np.zeros_like(value)
        return np.asarray(_draw(known, name, value, index, generator)).astype(value.dtype).reshape(value.shape)


def _draw(known: _Range, name: str, value: np.ndarray, index: int, generator: np.random.Generator) -> np.ndarray:
    whole = value.dtype.kind in "biu" or "int" in value.dtype.name
    if whole and "mask" in name.lower() and known.categories <= {0.0, 1.0}:
        return draw_mask(value.shape, index, generator)
    if len(known.categories) <= MAX_CATEGORIES and (whole or known.least == known.most):
        return generator.choice(sorted(known.categories), size=value.shape)
    if whole:
        least, most = max(int(known.least), -_MAX_MAGNITUDE), min(int(known.most), _MAX_MAGNITUDE)
        return generator.integers(least, most, value.shape, endpoint=True)
    mean = known.total / known.count
    deviation = float(np.sqrt(max(0.0, known.squares / known.count - mean**2)))
    drawn = generator.normal(mean, deviation, value.shape)
    return np.clip(drawn, known.least, known.most)
