"""Find the fewest nodes that must stay in 32 bits, in a bounded number of rounds.

A round asks the emulator for the answers to every sample with one set of kept nodes. Nodes whose results do not fit
are kept first. Then every node's own share of the error is measured once, all others are ranked by it, and the first
one, two, four, … of that order are kept until the gate holds; halving finds how many it takes, and in the rounds that
are left whole pieces of that list are tried without.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bundler.model.runtime import Gate
from bundler.onnxkit.float_conversion.emulator import Emulator
from bundler.onnxkit.float_conversion.figures import Judgement
from bundler.onnxkit.float_conversion.narrow import GREATEST
from bundler.onnxkit.golden import GoldenSet
from bundler.onnxkit.value_files import Value

MOST_ROUNDS: Final = 40
_OVERFLOW_PASSES: Final = 6
"""An overflow hides those behind it, so they come to light one after the other."""
_FETCHED: Final = 1 << 28
"""Bytes of inner values that are looked at in one run; every run computes the whole model."""
_GUESSED: Final = 1 << 23
"""Bytes of a value that was not seen yet."""
_REMEMBERED: Final = 1 << 28
"""Bytes of reference outputs that are kept; beyond, they are computed again in each round."""

Say = Callable[[int, str], None]
"""Called with the number of the round and what it is about."""


@dataclass(slots=True)
class Found:
    """What a search answers: the nodes to `keep`, those among them that `overflow`, the figures of `first` (no node
    kept) and `last` (all of `keep`).
    """

    keep: list[str]
    overflow: list[str]
    first: Judgement
    last: Judgement
    rounds: int
    samples: int

    @property
    def holds(self) -> bool:
        """Whether the gate is met."""
        return self.last.holds()


@dataclass(slots=True)
class Search:
    """One search; `indices` are the samples that it looks at."""

    emulator: Emulator
    golden: GoldenSet
    indices: Sequence[int]
    gate: Gate
    say: Say
    rounds: int = 0
    _references: dict[int, Mapping[str, Value]] = field(default_factory=dict)
    _remembered: int = 0
    _sizes: dict[str, int] = field(default_factory=dict)

    def find(self) -> Found:
        """The nodes to keep. Raises `StageError` when the model does not run on a sample."""
        first = self.judge(())
        if first.holds():
            return Found([], [], first, first, self.rounds, len(self.indices))
        overflow = self.find_overflow()
        pinned = [name for name in self.emulator.wiring.nodes if name in overflow]
        last = self.judge(pinned) if pinned else first
        keep = pinned
        if not last.holds():
            ranked = [name for name in self.rank(pinned) if name not in overflow]
            keep, last = self._grow(pinned, ranked, last)
        return Found(keep, sorted(overflow), first, last, self.rounds, len(self.indices))

    def judge(self, kept: Sequence[str]) -> Judgement:
        """The figures with these nodes kept."""
        self.rounds += 1
        self.say(self.rounds, f"{len(kept)} nodes in 32 bits")
        judgement = Judgement(self.gate)
        for index in self.indices:
            inputs = self.golden.sample(index).inputs
            judgement.add(self._reference(index, inputs), self.emulator.answer(inputs, kept))
        return judgement

    def _reference(self, index: int, inputs: Mapping[str, Value]) -> Mapping[str, Value]:
        if index in self._references:
            return self._references[index]
        answer = self.emulator.answer(inputs, None)
        size = sum(value.nbytes for value in answer.values() if isinstance(value, np.ndarray))
        if self._remembered + size <= _REMEMBERED:
            self._remembered += size
            self._references[index] = answer
        return answer

    def find_overflow(self) -> set[str]:
        """Nodes whose results do not fit in 16 bits, and those that read them."""
        found: set[str] = set()
        readers = self.emulator.wiring.readers()
        for _ in range(_OVERFLOW_PASSES):
            too_great = {name for name in self._too_great(found) if self._touches(name, readers, found)}
            new = {
                name for value in too_great for name in (self.emulator.wiring.makers[value], *readers.get(value, ()))
            }
            new &= set(self.emulator.wiring.nodes)
            if new <= found:
                break
            found |= new
        return found

    def _touches(self, value: str, readers: Mapping[str, list[str]], kept: set[str]) -> bool:
        """Whether the value is still rounded somewhere."""
        return any(name not in kept for name in (self.emulator.wiring.makers[value], *readers.get(value, ())))

    def _too_great(self, kept: set[str]) -> set[str]:
        limit = GREATEST[self.emulator.conversion.kind]
        found: set[str] = set()
        for inputs, names in self._chunks():
            for name, value in self._fetch(inputs, kept, names).items():
                if isinstance(value, np.ndarray) and bool((np.isfinite(value) & (np.abs(value) > limit)).any()):
                    found.add(name)
        return found

    def _fetch(self, inputs: Mapping[str, Value], kept: Collection[str] | None, names: list[str]) -> dict[str, Value]:
        values = self.emulator.run(inputs, kept, names)
        self._sizes.update({name: value.nbytes for name, value in values.items() if isinstance(value, np.ndarray)})
        return values

    def _chunks(self) -> Iterator[tuple[Mapping[str, Value], list[str]]]:
        """Every sample with all inner values, as many at a time as there is room for."""
        for index in self.indices:
            inputs = self.golden.sample(index).inputs
            chunk: list[str] = []
            room = _FETCHED
            for name in self.emulator.wiring.makers:
                size = self._sizes.get(name, _GUESSED)
                if chunk and size > room:
                    yield inputs, chunk
                    chunk, room = [], _FETCHED
                chunk.append(name)
                room -= size
            if chunk:
                yield inputs, chunk

    def rank(self, kept: Sequence[str]) -> list[str]:
        """All nodes, that which adds most to the error first."""
        noise: dict[str, list[float]] = {name: [0.0, 0.0] for name in self.emulator.wiring.makers}
        for inputs, names in self._chunks():
            exact, rough = (self._fetch(inputs, choice, names) for choice in (None, kept))
            for name in names:
                _add_noise(noise[name], exact[name], rough[name])
        ratios = {name: error / power if power else error for name, (error, power) in noise.items()}
        wiring = self.emulator.wiring
        scores = {}
        for node in wiring.nodes:
            made = max((ratios[name] for name in wiring.made[node]), default=0.0)
            read = max((ratios.get(name, 0.0) for name in wiring.read[node]), default=0.0)
            # What only hands its inputs' error on comes last, the more of it the earlier.
            scores[node] = made - read if made > read else (made - read) * 1e-9
        places = {node: place for place, node in enumerate(wiring.nodes)}
        return sorted(wiring.nodes, key=lambda node: (-scores[node], places[node]))

    def _grow(self, pinned: list[str], ranked: list[str], failed: Judgement) -> tuple[list[str], Judgement]:
        """The shortest start of `ranked` with which the gate holds, then without what is not needed of it."""
        low, high, best = 0, 0, failed
        while not best.holds() and high < len(ranked):
            low, high = high, min(len(ranked), max(1, 2 * high))
            best = self.judge(pinned + ranked[:high])
        if not best.holds():
            return pinned + ranked, best
        while high - low > 1 and self.rounds < MOST_ROUNDS:
            middle = (low + high) // 2
            judgement = self.judge(pinned + ranked[:middle])
            if judgement.holds():
                high, best = middle, judgement
            else:
                low = middle
        return self._thin(pinned + ranked[:high], best)

    def _thin(self, keep: list[str], best: Judgement) -> tuple[list[str], Judgement]:
        size = len(keep) // 2
        while size and self.rounds < MOST_ROUNDS:
            start = 0
            while start < len(keep) and self.rounds < MOST_ROUNDS:
                fewer = keep[:start] + keep[start + size :]
                judgement = self.judge(fewer)
                if judgement.holds():
                    keep, best = fewer, judgement
                else:
                    start += size
            size //= 2
        return keep, best


def _add_noise(sums: list[float], exact: Value, rough: Value) -> None:
    """Add a sample's error and power; what is not finite in the reference says nothing."""
    if not isinstance(exact, np.ndarray) or not isinstance(rough, np.ndarray) or exact.shape != rough.shape:
        return
    finite = np.isfinite(exact)
    known, found = exact[finite].astype(np.float64), rough[finite].astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        error = float(np.square(found - known).sum())
    sums[0] += error if np.isfinite(error) else 1e300
    sums[1] += float(np.square(known).sum())
