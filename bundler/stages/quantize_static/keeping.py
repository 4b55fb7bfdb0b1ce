"""Leave the worst nodes in floating point: as few as the accuracy asks for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

from bundler.model.errors import StageError
from bundler.model.stage import Report
from bundler.stages.quantize_static.quantizing import Loaded, quantize
from bundler.stages.quantize_static.recipe import Recipe
from bundler.workbench.quantization.blame import Noise, activation_noise, weight_noise
from bundler.workbench.quantization.calibration import Ranges
from bundler.workbench.quantization.preparing import save
from bundler.workbench.quantization.reference import own_errors
from bundler.workbench.quantization.samples import SampleStream, run_sample
from bundler.workbench.sessions import SessionSettings, open_session
from bundler.workbench.structure import read_structure

SAMPLES: Final = 8
"""Calibration samples on which accuracy is looked at; the gate looks at others."""
DEFAULT_SQNR_DB: Final = 20.0
_MOST_ROUNDS: Final = 10
"""Enough to halve a thousand nodes down to one."""
_START: Final = 0.8
_END: Final = 0.97
"""Shares of the stage's work between which the search reports."""
_QUANTIZED: Final = "candidate.onnx"


@dataclass(frozen=True, slots=True)
class Trial:
    """A model whose ranges are known, to be quantised in several ways."""

    loaded: Loaded
    recipe: Recipe
    ranges: Ranges
    samples: SampleStream
    scratch: Path

    def accuracy(self, kept: tuple[str, ...]) -> float:
        """The lowest ratio of signal to noise of any output, in dB, with the nodes `kept` in floating point."""
        return lowest_sqnr(self.loaded.path, self.quantized(kept), self.samples)

    def quantized(self, kept: tuple[str, ...], *, qdq: bool = False) -> Path:
        """The model without the nodes `kept`; `qdq` instead of the format that is asked for."""
        recipe = replace(self.recipe, exclude_nodes=(*self.recipe.exclude_nodes, *kept))
        target = self.scratch / _QUANTIZED
        quantize(self.loaded, replace(recipe, format="qdq") if qdq else recipe, self.ranges, target)
        return target

    def ranked(self) -> tuple[str, ...]:
        """Quantised nodes, the one with the noisiest tensor first."""
        path = self.quantized((), qdq=True)
        noise = {
            name: found.pair.decibels
            for name, found in activation_noise(
                self.loaded.path, path, self.samples.first(SAMPLES), self.scratch
            ).items()
        }
        noise |= {name: found.decibels for name, found in weight_noise(self.loaded.path, path).items()}
        scores = {
            node.name: min(noise[name] for name in (*node.input, *node.output) if name in noise)
            for node in read_structure(self.loaded.path).graph.node
            if node.op_type in self.recipe.operators
            and node.name not in self.recipe.exclude_nodes
            and any(name in noise for name in (*node.input, *node.output))
        }
        return tuple(sorted(scores, key=lambda name: (scores[name], name)))


def keep_worst_float(trial: Trial, least_db: float | None, report: Report) -> tuple[Trial, Mapping[str, Any]]:
    """The trial with the fewest of the worst nodes left out whose outputs reach `least_db`, and the facts.

    Where not even all but one are enough, all but one are left out: the gate has the last word.
    """
    least = DEFAULT_SQNR_DB if least_db is None else least_db
    trial = replace(trial, loaded=_with_names(trial.loaded, trial.scratch))
    accuracy = trial.accuracy(())
    kept: tuple[str, ...] = ()
    if accuracy < least:
        kept, accuracy = _search(trial, least, report)
    facts = {"kept_nodes": list(kept), "sqnr_db": round(accuracy, 2), "least_sqnr_db": least}
    recipe = replace(trial.recipe, exclude_nodes=(*trial.recipe.exclude_nodes, *kept))
    return replace(trial, recipe=recipe), facts


def _search(trial: Trial, least: float, report: Report) -> tuple[tuple[str, ...], float]:
    """Halve the number of nodes to keep out, from the worst on."""
    ranked = trial.ranked()
    low, high = 1, max(1, len(ranked) - 1)
    best = (ranked[:high], trial.accuracy(ranked[:high]))
    for turn in range(_MOST_ROUNDS):
        if low >= high or best[1] < least:
            break
        middle = (low + high) // 2
        report(_START + (_END - _START) * turn / _MOST_ROUNDS, f"trying with {middle} nodes in floating point")
        accuracy = trial.accuracy(ranked[:middle])
        if accuracy >= least:
            high, best = middle, (ranked[:middle], accuracy)
        else:
            low = middle + 1
    return best


def lowest_sqnr(float_path: Path, quantized_path: Path, samples: SampleStream) -> float:
    """The lowest ratio of signal to noise, in dB, of any output over the first samples."""
    plain = open_session(float_path, SessionSettings(), error=StageError)
    quantized = open_session(quantized_path, SessionSettings(), error=StageError)
    outputs = [output.name for output in plain.get_outputs()]
    noises = {name: Noise() for name in outputs}
    for sample in samples.first(SAMPLES):
        values = zip(outputs, run_sample(plain, sample, outputs), run_sample(quantized, sample, outputs), strict=True)
        for name, clean, noisy in values:
            if isinstance(clean, np.ndarray) and clean.dtype.kind == "f":
                noises[name].add(clean, noisy)
    found = [noise.decibels for noise in noises.values() if noise.signal]
    return min(found, default=float("inf"))


def _with_names(loaded: Loaded, scratch: Path) -> Loaded:
    """The quantiser leaves nodes out by their names, so each has one of its own."""
    structure = read_structure(loaded.path)
    names = [node.name for node in structure.graph.node]
    if "" not in names and len(set(names)) == len(names):
        return loaded
    with own_errors("the model cannot be read whole"):
        model = onnx.load(loaded.path)
    taken = set(names)
    seen: set[str] = set()
    for place, node in enumerate(model.graph.node):
        if not node.name or node.name in seen:
            node.name = next(name for name in _proposals(f"{node.op_type}_{place}") if name not in taken)
            taken.add(node.name)
        seen.add(node.name)
    save(model, scratch / "named.onnx", large=loaded.large)
    return replace(loaded, path=scratch / "named.onnx")


def _proposals(stem: str) -> Iterator[str]:
    yield stem
    yield from (f"{stem}_{number}" for number in itertools.count())
