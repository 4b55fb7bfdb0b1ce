"""Histograms over all samples without holding them: extremes first, then counts over the same edges."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

_KEPT_BYTES: Final = 64 << 20
"""Activations that may wait in memory for the second pass, so that a small set is run once only."""
_THREADS: Final = min(8, os.cpu_count() or 1)


@dataclass(slots=True)
class _Extremes:
    """Of one tensor over all samples; the least absolute value counts where the histogram is of absolute values."""

    dtype: np.dtype
    low: Any = None
    high: Any = None
    nearest: Any = None
    edges: np.ndarray | None = None
    counts: np.ndarray | None = None

    def widen(self, values: np.ndarray, *, absolute: bool) -> None:
        if not values.size:
            return
        low, high = values.min(), values.max()
        self.low = low if self.low is None else np.minimum(self.low, low)
        self.high = high if self.high is None else np.maximum(self.high, high)
        if absolute:
            nearest = np.absolute(values).min()
            self.nearest = nearest if self.nearest is None else np.minimum(self.nearest, nearest)

    def add(self, values: np.ndarray, bins: int, *, absolute: bool) -> None:
        data = np.absolute(values) if absolute else values
        counts, edges = np.histogram(data, bins, range=self.span(absolute=absolute))
        self.counts = counts if self.counts is None else self.counts + counts
        self.edges = edges

    def span(self, *, absolute: bool) -> tuple[Any, Any]:
        """Where the reference's one histogram over everything begins and ends, of the types that it uses."""
        if self.low is None:
            zero = np.array(0, dtype=self.dtype)
            return (0.0, 1.0) if absolute else (-zero, zero)
        reach = np.array(max(abs(self.low), abs(self.high)), dtype=self.dtype)
        return (self.nearest, reach[()]) if absolute else (-reach, reach)


@dataclass(slots=True)
class Histograms:
    """First `measure` every sample, then `count` every sample; `finished` is what the reference's collector holds.

    A tensor with a value that is no finite number is left out of `finished` and named in `not_finite`.
    """

    bins: int
    absolute: bool
    tensors: dict[str, _Extremes] = field(default_factory=dict)
    not_finite: set[str] = field(default_factory=set)
    _kept: list[dict[str, np.ndarray]] = field(default_factory=list)
    _room: int = _KEPT_BYTES

    def measure(self, activations: Mapping[str, np.ndarray]) -> None:
        """Take one sample into account, first pass."""
        for name, values in activations.items():
            self.tensors.setdefault(name, _Extremes(values.dtype)).widen(values, absolute=self.absolute)
        size = sum(values.nbytes for values in activations.values())
        if self._room >= size:
            self._room -= size
            self._kept.append(dict(activations))
        else:
            self._room = 0  # Only a beginning is kept: the others are run again in order.

    def release(self) -> list[dict[str, np.ndarray]]:
        """The first samples' activations, as far as there was room; whoever takes them lets them go one by one."""
        kept, self._kept = self._kept, []
        for name, extremes in self.tensors.items():
            if extremes.low is not None and not np.isfinite([extremes.low, extremes.high]).all():
                self.not_finite.add(name)
        return kept

    def count(self, activations: Mapping[str, np.ndarray]) -> None:
        """Take one sample into account, second pass. Counting lets go of the interpreter, so tensors are shared out."""
        names = [name for name in activations if name not in self.not_finite]

        def add(name: str) -> None:
            self.tensors[name].add(activations[name].ravel(), self.bins, absolute=self.absolute)

        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(add, names))

    def finished(self) -> dict[str, tuple[Any, ...]]:
        """Counts, edges, least and greatest value by tensor, and how far from zero the edges reach."""
        return {name: self._finish(self.tensors[name]) for name in self.tensors if name not in self.not_finite}

    def _finish(self, extremes: _Extremes) -> tuple[Any, ...]:
        zero = np.array(0, dtype=extremes.dtype)
        low, high = (zero, zero) if extremes.low is None else (extremes.low, extremes.high)
        if extremes.edges is None or extremes.counts is None:
            msg = "a tensor was measured and never counted"
            raise ValueError(msg)
        if self.absolute:
            return (extremes.counts, extremes.edges.astype(extremes.dtype), low, high)
        return (extremes.counts, extremes.edges, low, high, np.array(max(abs(low), abs(high)), dtype=extremes.dtype))
