"""Describe the recorded values of one output: its signal, whether it can be compared, and how significantly."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from bundler.model.reference import EXACT, SIGNIFICANT, ReferenceFigures
from bundler.onnxkit.elements import to_wide
from bundler.onnxkit.equality import is_float
from bundler.onnxkit.golden import GoldenSet
from bundler.onnxkit.score_rows import ScoreRows
from bundler.onnxkit.value_files import Value, tensors_of

SIGNAL_QUANTILE: Final = 0.25
"""The quantile of the samples' own signals that replaces smaller ones: a quarter may be blank."""
QUIET_SIGNAL_SHARE: Final = 0.01
"""Samples with less than this share of that signal are quiet: their errors are compared with more than their signal."""
MAX_QUIET_SHARE: Final = 0.05
"""The share of quiet samples from which it is reported."""
MIN_SIGNAL_ELEMENTS: Final = 8
"""Samples with fewer elements have no signal of their own: their distance from the other samples counts."""
ONE_SIDED_SHARE: Final = 0.9
"""The share of equal labels from which a constant output would come near the limits on agreement."""
MAX_COUNTED: Final = 100_000
"""Maximum number of labels that are counted for this."""
SATURATED_ROWS: Final = 0.9
"""Probabilities are saturated where the highest one is almost 1 in this share of rows."""
SATURATED_END: Final = 0.001
SATURATED_SHARE: Final = 0.99
"""Other numbers from 0 to 1 are saturated where this share of them is that near to either end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Count, mean, and sum of squared distances from the mean. Spreads are joined as by Chan, Golub and LeVeque (1979),
    which stays exact where the mean is large compared with the distances.
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def join(self, other: Spread) -> Spread:
        """The spread of both together."""
        count = self.count + other.count
        if not self.count or not other.count:
            return other if other.count else self
        distance = other.mean - self.mean
        return Spread(
            count=count,
            mean=self.mean + distance * (other.count / count),
            squares=self.squares + other.squares + distance * distance * (self.count * other.count / count),
        )


def spread_of(values: np.ndarray) -> Spread:
    """The spread of finite numbers; the two parts of complex ones count separately."""
    if not values.size:
        return Spread()
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(values.mean())
        return Spread(count=values.size, mean=mean, squares=float(np.square(values - mean).sum()))


@dataclass(slots=True)
class ReferenceTally:
    """Accumulates the recorded values of one output. The integers of a `quantity` count as numbers."""

    name: str
    quantity: bool = False
    elements: int = 0
    finite: int = 0
    bounded: int = 0
    least: float = math.inf
    greatest: float = -math.inf
    quiet_peak: float = math.inf
    samples: list[Spread] = field(default_factory=list)
    rows: ScoreRows = field(default_factory=ScoreRows)
    digests: set[bytes] = field(default_factory=set)
    exact: set[str] = field(default_factory=set)
    """For values other than numbers the first of each tensor, and an empty text if another differs."""
    numeric: bool = True
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, value: Value) -> None:
        """Add one sample's output."""
        spread, digest = Spread(), hashlib.sha256()
        for array in tensors_of(value):
            self.elements += array.size
            if is_float(array) or (self.quantity and array.dtype.kind in "iu"):
                numbers = as_numbers(array)
                spread = spread.join(self._add_numbers(numbers))
                digest.update(numbers.tobytes())
                self.rows.add(numbers if is_float(array) else np.empty(0))
            else:
                self._add_exact(array, digest)
        self.samples.append(spread)
        self.digests.add(digest.digest())

    def _add_numbers(self, numbers: np.ndarray) -> Spread:
        values = numbers[np.isfinite(numbers)]
        self.finite += values.size
        if values.size:
            self.least, self.greatest = min(self.least, float(values.min())), max(self.greatest, float(values.max()))
            self.quiet_peak = min(self.quiet_peak, float(np.abs(values).max()))
            self.bounded += int(((values <= 1 - SATURATED_END) & (values >= SATURATED_END)).sum())
        return spread_of(values)

    def _add_exact(self, array: np.ndarray, digest: Any) -> None:
        self.numeric = False
        if not array.size:
            return
        self.counts.update(map(str, array.ravel()[: max(0, MAX_COUNTED - self.counts.total())].tolist()))
        first = array.ravel()[0]
        same = bool(np.asarray(array == first).all())
        self.exact.update((str(first),) if same else (str(first), ""))
        digest.update(
            str(array.tolist()).encode("utf-8", "surrogatepass") if array.dtype.kind in "OUST" else array.tobytes()
        )

    def figures(self, *, stable: bool = True) -> ReferenceFigures:
        """The figures. An output that is not `stable` differs from run to run."""
        total, varies = self._total, self._varies
        scores = varies and self.rows.look_like_scores(self._usual_spread())
        return ReferenceFigures(
            name=self.name,
            elements=self.elements,
            numeric=self.numeric,
            signal=total.squares if varies else None,
            signals=self._sample_signals() if varies else (),
            peak=self._peak,
            quiet_peak=self.quiet_peak if self.finite else 0.0,
            scores=scores,
            quantity=self.quantity,
            unjudged=self._explain_unjudged() if stable else "it differs from run to run",
            doubts=tuple(self._doubts(scores=scores)) if stable else (),
        )

    @property
    def _total(self) -> Spread:
        total = Spread()
        for spread in self.samples:
            total = total.join(spread)
        return total

    @property
    def _varies(self) -> bool:
        # Squares of numbers beyond 1e150 are infinite: there is no ratio, and errors are compared with the peak.
        different = self.numeric and self.greatest - self.least > EXACT * self._peak
        return different and math.isfinite(self._total.squares)

    @property
    def _peak(self) -> float:
        return max(abs(self.least), abs(self.greatest)) if self.finite else 0.0

    def _usual_spread(self) -> float:
        """The standard deviation within the median sample: samples of another scale change it little."""
        return math.sqrt(float(np.median([one.squares / one.count for one in self.samples if one.count])))

    def _sample_signals(self) -> tuple[float, ...]:
        """The energy with which each sample's noise is compared: never zero, or any noise would fail."""
        floor, powers = self._powers()
        if not floor:
            return ()
        own = iter(powers)
        return tuple(spread.count * max(next(own), floor) if spread.count else 0.0 for spread in self.samples)

    @property
    def _has_few(self) -> bool:
        """Whether no sample has a signal of its own, so that its distance from the other samples counts."""
        least = max(one.count for one in self.samples) < MIN_SIGNAL_ELEMENTS
        return least or not any(one.squares for one in self.samples)

    def _powers(self) -> tuple[float, list[float]]:
        """The least signal of a sample, and that of each sample with numbers, per element."""
        present = [spread for spread in self.samples if spread.count]
        few = self._has_few
        middle = float(np.median([spread.mean for spread in present]))
        powers = [spread.squares / spread.count + ((spread.mean - middle) ** 2 if few else 0.0) for spread in present]
        seen = [power for power in powers if power]
        if not seen:  # squares of numbers below 1e-162 are zero
            return 0.0, powers
        return float(np.quantile(seen, 0.5 if few else SIGNAL_QUANTILE)), powers

    def _explain_unjudged(self) -> str:
        if not self.elements:
            return "it is empty in every sample"
        if not self.numeric:
            one_value = len(self.exact) == 1 and self.elements > 1
            return "it has the same value everywhere in every sample" if one_value else ""
        if not self.finite:
            return "it is NaN or infinite everywhere in every sample"
        if self._peak <= SIGNIFICANT:
            return "it is zero, or almost zero, everywhere in every sample"
        if self.elements > 1 and self.greatest - self.least <= EXACT * self._peak:
            return f"it is {self.greatest:.6g} everywhere in every sample"
        return ""

    def _doubts(self, *, scores: bool) -> Iterator[str]:
        if self._explain_unjudged():
            return
        if len(self.samples) > 1 and len(self.digests) == 1:
            yield "it is the same for every sample"
        commonest = self.counts.most_common(1)
        if commonest and commonest[0][1] >= ONE_SIDED_SHARE * self.counts.total() and self.elements > 1:
            found = f"{commonest[0][1] / self.counts.total():.0%} of its values are the same"
            yield f"one-sided: {found}, so a constant output would agree as much"
        share = self.rows.saturated_share()
        if scores and share >= SATURATED_ROWS:
            yield f"saturated: the highest probability is 0.999 or more in {share:.0%} of its rows"
        elif not scores and self._is_saturated:
            yield f"saturated: {1 - self.bounded / self.finite:.0%} of its values are within 0.001 of 0 or 1"
        if self._varies and not self._has_few:  # a small distance from the middle is no quiet sample
            yield from self._doubt_quiet()
        if self.numeric and self.finite < self.elements:
            yield "it is NaN or infinite in places, where only the place is compared"

    def _doubt_quiet(self) -> Iterator[str]:
        floor, powers = self._powers()
        quiet = sum(power < QUIET_SIGNAL_SHARE * floor for power in powers)
        if quiet > MAX_QUIET_SHARE * len(powers):
            yield (
                f"in {quiet} of {len(powers)} samples its signal is below a hundredth of the usual, "
                "and errors there are compared with the usual signal"
            )

    @property
    def _is_saturated(self) -> bool:
        between = self.numeric and self.finite and self.least >= 0 and self.greatest <= 1
        return bool(between and self.bounded <= (1 - SATURATED_SHARE) * self.finite)


def tally_references(golden: GoldenSet) -> dict[str, ReferenceFigures]:
    """The figures of a whole set's recorded outputs, by output. Raises `StageError`."""
    tallies: dict[str, ReferenceTally] = {}
    for sample in golden:
        for name, value in sample.outputs.items():
            tallies.setdefault(name, ReferenceTally(name=name)).add(value)
    return {name: tally.figures(stable=name not in golden.unstable_outputs) for name, tally in tallies.items()}


def as_numbers(array: np.ndarray) -> np.ndarray:
    """As 64-bit floats; complex ones as two."""
    wide = to_wide(array)
    return np.stack([wide.real, wide.imag]) if wide.dtype.kind == "c" else wide
