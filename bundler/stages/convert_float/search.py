"""Find the fewest nodes that must stay in 32 bits, in a bounded number of rounds.

A round emulates the outputs of every sample with one set of kept nodes. Means whose sum is out of range are always
kept: CUDA's `ReduceMean` stores the sum in half precision (onnxruntime-gpu 1.31.1, on an H200). Then nodes whose
results are out of range are kept. Then each node's own share of the error is measured once, all others are ranked by
it, and the first one, two, four, … of that order are kept until the gate holds. Bisection then finds how many are
needed, and the remaining rounds try to drop whole ranges of that list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bundler.model.runtime import Gate
from bundler.onnxkit.float_conversion.emulator import Emulator
from bundler.onnxkit.float_conversion.figures import Judgement
from bundler.onnxkit.float_conversion.narrow import GREATEST
from bundler.onnxkit.golden import GoldenSet
from bundler.onnxkit.value_files import Value

MAX_ROUNDS: Final = 40
_OVERFLOW_PASSES: Final = 6
"""An overflow hides those behind it, so each pass finds only the next ones."""
_MAX_FETCHED_BYTES: Final = 1 << 28
"""Bytes of inner values that one run returns; every run computes the whole model."""
_ASSUMED_BYTES: Final = 1 << 23
"""Assumed bytes of a value whose size is not known yet."""
_MAX_CACHED_BYTES: Final = 1 << 28
"""Bytes of reference outputs that are cached; the others are computed again in each round."""
Say = Callable[[int, str], None]
"""Called with the number of the round and a description of it."""


@dataclass(slots=True)
class Found:
    """The result of a search: the nodes to `keep`, those among them that `overflow`, the figures of `first` (no node
    kept but means whose sums overflow) and `last` (all of `keep`).
    """

    keep: list[str]
    overflow: list[str]
    first: Judgement
    last: Judgement
    rounds: int
    samples: int


@dataclass(slots=True)
class Search:
    """One search; `indices` are the samples that it uses."""

    emulator: Emulator
    golden: GoldenSet
    indices: Sequence[int]
    gate: Gate
    say: Say
    rounds: int = 0
    held: list[str] = field(default_factory=list)
    """Means whose sum overflows, which a search always keeps: no figure of the emulation says what they cost."""
    _summed: list[str] | None = None
    _references: dict[int, Mapping[str, Value]] = field(default_factory=dict)
    _remembered: int = 0
    _sizes: dict[str, int] = field(default_factory=dict)

    def find(self) -> Found:
        """The nodes to keep. Raises `StageError` when the model fails on a sample."""
        self.held = self.find_summed()
        first = self.judge(())
        if first.holds():
            return Found(self.held, self.held, first, first, self.rounds, len(self.indices))
        overflow = self.find_overflow()
        pinned = [name for name in self.emulator.wiring.nodes if name in overflow.difference(self.held)]
        keep, last = pinned, self.judge(pinned) if pinned else first
        if not last.holds():
            ranked = [name for name in self.rank([*self.held, *pinned]) if name not in overflow]
            keep, last = self._grow(pinned, ranked, last)
        return Found([*self.held, *keep], sorted(overflow), first, last, self.rounds, len(self.indices))

    def judge(self, kept: Sequence[str]) -> Judgement:
        """The figures when these nodes are kept, and those that always are."""
        self.rounds += 1
        self.say(self.rounds, f"{len(kept)} nodes in 32 bits")
        judgement = Judgement(self.gate)
        for index in self.indices:
            inputs = self.golden.sample(index).inputs
            judgement.add(self._reference(index, inputs), self.emulator.run_all(inputs, [*self.held, *kept]))
        return judgement

    def _reference(self, index: int, inputs: Mapping[str, Value]) -> Mapping[str, Value]:
        if index in self._references:
            return self._references[index]
        outputs = self.emulator.run_all(inputs, None)
        size = sum(value.nbytes for value in outputs.values() if isinstance(value, np.ndarray))
        if self._remembered + size <= _MAX_CACHED_BYTES:
            self._remembered += size
            self._references[index] = outputs
        return outputs

    def find_summed(self) -> list[str]:
        """The means whose sum does not fit in 16 bits for one of the samples, in the model's order."""
        if self._summed is None:
            found = set[str]().union(*map(self._find_summed, self.indices)) if self.emulator.wiring.averages else ()
            self._summed = [name for name in self.emulator.wiring.nodes if name in found]
        return self._summed

    def _find_summed(self, index: int) -> set[str]:
        averages, limit = self.emulator.wiring.averages, GREATEST[self.emulator.conversion.kind]
        inputs = self.golden.sample(index).inputs
        sizes = {name: value.size for name, value in inputs.items() if isinstance(value, np.ndarray)}
        greatest: dict[str, float] = {}
        made = {name for _, name in averages.values()}
        wanted = dict.fromkeys(name for pair in averages.values() for name in pair)
        for names in self._chunks([name for name in wanted if name in self.emulator.wiring.makers]):
            for name, value in self._fetch(inputs, None, names).items():
                if isinstance(value, np.ndarray):
                    sizes[name] = value.size
                if name in made and isinstance(value, np.ndarray):
                    greatest[name] = float(np.abs(value[np.isfinite(value)]).max(initial=0.0))
        return {
            node
            for node, (read, mean) in averages.items()
            if greatest.get(mean, 0.0) * sizes.get(read, 0) > limit * sizes.get(mean, 1)
        }

    def find_overflow(self) -> set[str]:
        """Nodes whose results do not fit in 16 bits, and those that read them; means whose sum does not."""
        found = set(self.find_summed())
        makers, readers = self.emulator.wiring.makers, self.emulator.wiring.readers()
        for _ in range(_OVERFLOW_PASSES):
            # A value that no reader rounds any more is in 32 bits already.
            around = [{makers[value], *readers.get(value, ())} for value in self._find_out_of_range(found)]
            new = set[str]().union(*(names for names in around if not names <= found))
            new &= set(self.emulator.wiring.nodes)
            if new <= found:
                break
            found |= new
        return found

    def _find_out_of_range(self, kept: set[str]) -> set[str]:
        limit = GREATEST[self.emulator.conversion.kind]
        found: set[str] = set()
        for inputs, names in self._all_chunks():
            for name, value in self._fetch(inputs, kept, names).items():
                if isinstance(value, np.ndarray) and bool((np.isfinite(value) & (np.abs(value) > limit)).any()):
                    found.add(name)
        return found

    def _fetch(self, inputs: Mapping[str, Value], kept: Collection[str] | None, names: list[str]) -> dict[str, Value]:
        values = self.emulator.run(inputs, kept, names)
        self._sizes.update({name: value.nbytes for name, value in values.items() if isinstance(value, np.ndarray)})
        return values

    def _all_chunks(self) -> Iterator[tuple[Mapping[str, Value], list[str]]]:
        """Every sample with all inner values, in chunks that fit into memory."""
        for index in self.indices:
            inputs = self.golden.sample(index).inputs
            for names in self._chunks(self.emulator.wiring.makers):
                yield inputs, names

    def _chunks(self, wanted: Iterable[str]) -> Iterator[list[str]]:
        """These values, in chunks that fit into memory, by the sizes that they had last."""
        chunk: list[str] = []
        room = _MAX_FETCHED_BYTES
        for name in wanted:
            size = self._sizes.get(name, _ASSUMED_BYTES)
            if chunk and size > room:
                yield chunk
                chunk, room = [], _MAX_FETCHED_BYTES
            chunk.append(name)
            room -= size
        if chunk:
            yield chunk

    def rank(self, kept: Sequence[str]) -> list[str]:
        """All nodes, the one that contributes most error first."""
        noise: dict[str, list[float]] = {name: [0.0, 0.0] for name in self.emulator.wiring.makers}
        for inputs, names in self._all_chunks():
            exact, rough = (self._fetch(inputs, choice, names) for choice in (None, kept))
            for name in names:
                _add_noise(noise[name], exact[name], rough[name])
        ratios = {name: error / power if power else error for name, (error, power) in noise.items()}
        wiring = self.emulator.wiring
        scores = {}
        for node in wiring.nodes:
            made = max((ratios[name] for name in wiring.made[node]), default=0.0)
            read = max((ratios.get(name, 0.0) for name in wiring.read[node]), default=0.0)
            # Nodes that only pass on the error of their inputs come last, the larger errors first.
            scores[node] = made - read if made > read else (made - read) * 1e-9
        places = {node: place for place, node in enumerate(wiring.nodes)}
        return sorted(wiring.nodes, key=lambda node: (-scores[node], places[node]))

    def _grow(self, pinned: list[str], ranked: list[str], failed: Judgement) -> tuple[list[str], Judgement]:
        """The shortest prefix of `ranked` with which the gate holds, then without the nodes that it does not need."""
        low, high, best = 0, 0, failed
        while not best.holds() and high < len(ranked):
            low, high = high, min(len(ranked), max(1, 2 * high))
            best = self.judge(pinned + ranked[:high])
        if not best.holds():
            return pinned + ranked, best
        while high - low > 1 and self.rounds < MAX_ROUNDS:
            middle = (low + high) // 2
            judgement = self.judge(pinned + ranked[:middle])
            if judgement.holds():
                high, best = middle, judgement
            else:
                low = middle
        return self._drop_unneeded(pinned + ranked[:high], best)

    def _drop_unneeded(self, keep: list[str], best: Judgement) -> tuple[list[str], Judgement]:
        size = len(keep) // 2
        while size and self.rounds < MAX_ROUNDS:
            start = 0
            while start < len(keep) and self.rounds < MAX_ROUNDS:
                fewer = keep[:start] + keep[start + size :]
                judgement = self.judge(fewer)
                if judgement.holds():
                    keep, best = fewer, judgement
                else:
                    start += size
            size //= 2
        return keep, best


def _add_noise(sums: list[float], exact: Value, rough: Value) -> None:
    """Add a sample's error and power; values that are not finite in the reference are skipped."""
    if not isinstance(exact, np.ndarray) or not isinstance(rough, np.ndarray) or exact.shape != rough.shape:
        return
    finite = np.isfinite(exact)
    known, found = exact[finite].astype(np.float64), rough[finite].astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        error = float(np.square(found - known).sum())
    sums[0] += error if np.isfinite(error) else 1e300
    sums[1] += float(np.square(known).sum())
