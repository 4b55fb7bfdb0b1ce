"""Change the sample rate: with equal results on all machines of a kind, and simple to implement elsewhere.

`sinc` is `torchaudio.functional.resample` with its defaults (Hann window, six zero crossings, roll-off 0.99): see
https://pytorch.org/audio/stable/generated/torchaudio.functional.resample.html and the paper behind it,
https://ccrma.stanford.edu/~jos/resample/.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from bundler.model.preprocessing import Resample

_CROSSINGS: Final = 6
_ROLL_OFF: Final = 0.99
_BLOCK: Final = 1 << 14
"""Output samples that are computed at once: some MB."""


def needed_frames(length: int, old: int, new: int) -> int:
    """Number of samples at `old` on which the first `length` at `new` depend."""
    margin = math.ceil(_CROSSINGS * old / (min(old, new) * _ROLL_OFF)) + 1
    return length * old // new + 1 + margin


def resample(values: np.ndarray, old: int, new: int, method: Resample) -> np.ndarray:
    """Resample `values` (float32, one channel) from the rate `old` to `new`; float32."""
    if old == new:
        return values
    count = -(-len(values) * new // old)
    make: Callable[[np.ndarray, np.ndarray, int, int], np.ndarray] = _sinc if method == "sinc" else _linear
    made = np.empty(count, np.float32)
    for start in range(0, count, _BLOCK):
        positions = np.arange(start, min(start + _BLOCK, count), dtype=np.int64)
        made[start : start + _BLOCK] = make(values, positions, old, new)
    return made


def _linear(values: np.ndarray, positions: np.ndarray, old: int, new: int) -> np.ndarray:
    left = positions * old // new
    share = (positions * old % new) / new
    last = len(values) - 1
    between: np.ndarray = values[np.minimum(left, last)] * (1 - share) + values[np.minimum(left + 1, last)] * share
    return between


def _sinc(values: np.ndarray, positions: np.ndarray, old: int, new: int) -> np.ndarray:
    """Every output is the sum of the inputs around it, weighted by a windowed sinc, with zeros beyond the ends."""
    cutoff = min(old, new) * _ROLL_OFF
    reach = math.ceil(_CROSSINGS * old / cutoff)
    taps = np.arange(-reach, reach + 2, dtype=np.int64)
    places = (positions * old // new)[:, None] + taps
    inside = (places >= 0) & (places < len(values))
    found = np.where(inside, values[places.clip(0, len(values) - 1)], 0.0)
    # Distances repeat for each phase: weights are computed once for each.
    phases, which = np.unique(positions * old % new, return_inverse=True)
    weights = _weights((taps - (phases / new)[:, None]) * (cutoff / old)) * (cutoff / old)
    made: np.ndarray = np.einsum("ij,ij->i", found, weights[which])
    return made


def _weights(distances: np.ndarray) -> np.ndarray:
    """Sinc under a Hann window; `distances` in zero crossings."""
    near = distances.clip(-_CROSSINGS, _CROSSINGS)
    weights: np.ndarray = np.sinc(near) * np.cos(near * math.pi / _CROSSINGS / 2) ** 2
    return weights
