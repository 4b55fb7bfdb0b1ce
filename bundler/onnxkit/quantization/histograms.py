"""Compute histograms over all samples without keeping them: extremes first, then counts over the same edges."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

_KEPT_BYTES: Final = 64 << 20
"""Limit for activations that are kept for the second pass, so that a small set runs only once."""
_THREADS: Final = min(8, os.cpu_count() or 1)


@dataclass(slots=True)
class _Extremes:
    """Extremes of one tensor over all samples; also the minimum absolute value, for histograms of absolute values."""

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
        """The ends of the reference's histogram over all samples, in its own types."""
        if self.low is None:
            zero = np.array(0, dtype=self.dtype)
            return (0.0, 1.0) if absolute else (-zero, zero)
        reach = np.array(max(abs(self.low), abs(self.high)), dtype=self.dtype)
        return (self.nearest, reach[()]) if absolute else (-reach, reach)


@dataclass(slots=True)
class Histograms:
    """First `measure` every sample, then `count` every one; tensors that are not finite are in `not_finite` only."""

    bins: int
    absolute: bool
    tensors: dict[str, _Extremes] = field(default_factory=dict)
    not_finite: set[str] = field(default_factory=set)
    _kept: list[dict[str, np.ndarray]] = field(default_factory=list)
    _room: int = _KEPT_BYTES

    def measure(self, activations: Mapping[str, np.ndarray]) -> None:
        """Add one sample in the first pass."""
        for name, values in activations.items():
            self.tensors.setdefault(name, _Extremes(values.dtype)).widen(values, absolute=self.absolute)
        size = sum(values.nbytes for values in activations.values())
        if self._room >= size:
            self._room -= size
            self._kept.append(dict(activations))
        else:
            self._room = 0  # Only the first samples are kept: the others run again in order.

    def release(self) -> list[dict[str, np.ndarray]]:
        """The first samples' activations, up to the limit, which the caller frees one by one."""
        kept, self._kept = self._kept, []
        for name, extremes in self.tensors.items():
            if extremes.low is not None and not np.isfinite([extremes.low, extremes.high]).all():
                self.not_finite.add(name)
        return kept

    def count(self, activations: Mapping[str, np.ndarray]) -> None:
        """Add one sample in the second pass. Counting releases the GIL, so tensors are counted in threads."""
        names = [name for name in activations if name not in self.not_finite]

        def add(name: str) -> None:
            self.tensors[name].add(activations[name].ravel(), self.bins, absolute=self.absolute)

        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(add, names))

    def finished(self) -> dict[str, tuple[Any, ...]]:
        """Counts, edges, minimum and maximum by tensor, and the distance of the edges from zero."""
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
