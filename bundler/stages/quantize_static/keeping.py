"""Leave the nodes that cost the most accuracy in floating point: as few as the accuracy asks for.

Noise from different nodes adds up, nearly. So the noise that a group of nodes makes is measured with nothing else
quantised, the noisiest group is halved and measured again, down to single nodes, which are then kept out; until the
noise that is left is little enough. The reference's own figures (`qdq_loss_debug`) sort the nodes at first, so that the
bad ones stand together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from bundler.model.errors import StageError
from bundler.model.stage import Report
from bundler.stages.quantize_static.quantizing import quantize
from bundler.stages.quantize_static.recipe import Recipe
from bundler.workbench.quantization.blame import Noise, activation_noise, weight_noise
from bundler.workbench.quantization.calibration import Ranges
from bundler.workbench.quantization.preparing import Prepared
from bundler.workbench.quantization.samples import SampleStream, run_sample
from bundler.workbench.sessions import SessionSettings, open_session

SAMPLES: Final = 8
"""Calibration samples on which accuracy is looked at; the gate looks at others."""
DEFAULT_SQNR_DB: Final = 20.0
_GROUPS: Final = 8
_MOST_TRIALS: Final = 48
"""Models that are quantised and run at most before whole groups are kept out unsplit."""
_TIGHTER: Final = 0.7
"""By how much less noise is allowed after an estimate turned out too bright."""
_START: Final = 0.8
_END: Final = 0.97
"""Shares of the stage's work between which the search reports."""
_CANDIDATE: Final = "candidate.onnx"


@dataclass(frozen=True, slots=True)
class Trial:
    """A model whose ranges are known, to be quantised in several ways."""

    loaded: Prepared
    recipe: Recipe
    ranges: Ranges
    samples: SampleStream
    scratch: Path

    def noise(self, kept: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> np.ndarray:
        """Each output's share of noise (power to power), with the nodes `kept` left out, or none but `only` taken."""
        recipe = replace(self.recipe, exclude_nodes=(*self.recipe.exclude_nodes, *kept), only_nodes=only)
        target = self.scratch / _CANDIDATE
        quantize(self.loaded, recipe, self.ranges, target)
        return output_noise(self.loaded.path, target, self.samples)

    def ranked(self) -> tuple[str, ...]:
        """Quantised nodes, the one with the noisiest tensor first."""
        target = self.scratch / _CANDIDATE
        quantize(self.loaded, replace(self.recipe, format="qdq"), self.ranges, target)
        source = self.loaded.path
        found = activation_noise(source, target, self.samples.first(SAMPLES), self.scratch)
        noise = {name: item.pair.decibels for name, item in found.items()}
        noise |= {name: item.decibels for name, item in weight_noise(source, target).items()}
        scores = {
            node.name: min(noise[name] for name in (*node.input, *node.output) if name in noise)
            for node in self.loaded.read_structure().graph.node
            if node.op_type in self.recipe.operators
            and node.name not in self.recipe.exclude_nodes
            and any(name in noise for name in (*node.input, *node.output))
        }
        return tuple(sorted(scores, key=lambda name: (scores[name], name)))


def keep_worst_float(trial: Trial, least_db: float | None, report: Report) -> tuple[Trial, Mapping[str, Any]]:
    """The trial with few of the worst nodes left out, whose outputs reach `least_db`, and the facts.

    Where no number of nodes is enough, the least noisy ones stay quantised: the gate has the last word.
    """
    least = DEFAULT_SQNR_DB if least_db is None else least_db
    trial = replace(trial, loaded=replace(trial.loaded, named=True))
    noise = trial.noise()
    kept: tuple[str, ...] = ()
    if decibels(noise) < least:
        search = _Search(trial, least, report)
        kept, noise = search.run()
    facts = {"kept_nodes": list(kept), "sqnr_db": round(decibels(noise), 2), "least_sqnr_db": least}
    recipe = replace(trial.recipe, exclude_nodes=(*trial.recipe.exclude_nodes, *kept))
    return replace(trial, recipe=recipe), facts


@dataclass(slots=True)
class _Search:
    trial: Trial
    least: float
    report: Report
    groups: list[tuple[tuple[str, ...], np.ndarray]] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    trials: int = 0

    def run(self) -> tuple[tuple[str, ...], np.ndarray]:
        """The nodes to keep out, and the noise that is left."""
        for names in _parts(self.trial.ranked(), _GROUPS):
            self._measure(names)
        allowed = 10 ** (-self.least / 10)
        while True:
            while len(self.groups) > 1 and sum(noise for _, noise in self.groups).max() > allowed:  # type: ignore[union-attr]
                self._take_worst()
            noise = self.trial.noise(kept=tuple(self.kept))
            if decibels(noise) >= self.least or len(self.groups) <= 1:
                return tuple(sorted(self.kept)), noise
            allowed *= _TIGHTER

    def _take_worst(self) -> None:
        worst = max(range(len(self.groups)), key=lambda place: float(self.groups[place][1].max()))
        names, _ = self.groups.pop(worst)
        if len(names) == 1 or self.trials >= _MOST_TRIALS:
            self.kept.extend(names)
            return
        for half in _parts(names, 2):
            self._measure(half)

    def _measure(self, names: tuple[str, ...]) -> None:
        share = self.trials / (_MOST_TRIALS + _GROUPS)
        self.report(_START + (_END - _START) * min(1.0, share), f"measuring the noise of {len(names)} nodes")
        self.trials += 1
        self.groups.append((names, self.trial.noise(only=names)))


def _parts(names: tuple[str, ...], count: int) -> list[tuple[str, ...]]:
    size = max(1, -(-len(names) // count))
    return [names[start : start + size] for start in range(0, len(names), size)]


def output_noise(float_path: Path, quantized_path: Path, samples: SampleStream) -> np.ndarray:
    """Each output's noise power by its signal power, over the first samples."""
    plain = open_session(float_path, SessionSettings(), error=StageError)
    quantized = open_session(quantized_path, SessionSettings(), error=StageError)
    outputs = [output.name for output in plain.get_outputs()]
    noises = {name: Noise() for name in outputs}
    for sample in samples.first(SAMPLES):
        values = zip(outputs, run_sample(plain, sample, outputs), run_sample(quantized, sample, outputs), strict=True)
        for name, clean, noisy in values:
            if isinstance(clean, np.ndarray) and clean.dtype.kind == "f":
                noises[name].add(clean, noisy)
    return np.array([noise.noise / noise.signal if noise.signal else 0.0 for noise in noises.values()])


def decibels(noise: np.ndarray) -> float:
    """The lowest ratio of signal to noise of any output, in dB."""
    return float(-10 * np.log10(max(float(noise.max()), 1e-30)))
