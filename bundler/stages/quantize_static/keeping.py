"""Keep the nodes that cost the most accuracy in floating point: as few as the required accuracy allows.

Noise from different nodes adds up approximately. So the noise of a group of nodes is measured with nothing else
quantised, the noisiest group is halved and measured again, down to single nodes, which are then kept in floating
point, until the remaining noise is low enough. The reference's own figures (`qdq_loss_debug`) sort the nodes first, so
that noisy nodes are in the same groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from bundler.model.errors import StageError
from bundler.model.stage import Report
from bundler.onnxkit.golden import GoldenSet
from bundler.onnxkit.quantization.calibration import Ranges
from bundler.onnxkit.quantization.preparing import Prepared
from bundler.onnxkit.quantization.samples import run_sample
from bundler.onnxkit.quantization.tensor_noise import Noise, activation_noise, weight_noise
from bundler.onnxkit.sessions import SessionSettings, open_session
from bundler.stages.quantize_static.quantizing import quantize
from bundler.stages.quantize_static.recipe import Recipe

MAX_SAMPLES: Final = 8
"""Calibration samples on which the accuracy is measured; the gate uses other samples."""
DEFAULT_SQNR_DB: Final = 20.0
_GROUPS: Final = 8
_MAX_TRIALS: Final = 28
"""Limit of models that are quantised and run: each takes seconds for a model with many weights."""
_TIGHTER: Final = 0.7
"""Factor on the allowed noise after an estimate turned out too low."""
_START: Final = 0.8
_END: Final = 0.97
"""Progress of the stage at the start and the end of the search."""
_CANDIDATE: Final = "candidate.onnx"


@dataclass(frozen=True, slots=True)
class Trial:
    """A model with known ranges, to be quantised in several ways."""

    loaded: Prepared
    recipe: Recipe
    ranges: Ranges
    samples: GoldenSet
    scratch: Path

    def noise(self, clean: Clean, kept: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> np.ndarray:
        """Each output's noise-to-signal power, with the nodes `kept` not quantised, or with `only` those quantised."""
        recipe = replace(self.recipe, exclude_nodes=(*self.recipe.exclude_nodes, *kept), only_nodes=only)
        target = self.scratch / _CANDIDATE
        quantize(self.loaded, recipe, self.ranges, target)
        return output_noise(clean, target, self.samples)

    def ranked(self) -> tuple[str, ...]:
        """Quantised nodes, the one with the noisiest tensor first."""
        target = self.scratch / _CANDIDATE
        quantize(self.loaded, replace(self.recipe, format="qdq"), self.ranges, target)
        source = self.loaded.path
        found = activation_noise(source, target, self.samples.first(MAX_SAMPLES), self.scratch)
        found |= weight_noise(source, target)
        noise = {name: item.decibels for name, item in found.items()}
        scores = {
            node.name: min(noise[name] for name in (*node.input, *node.output) if name in noise)
            for node in self.loaded.read_structure().graph.node
            if node.op_type in self.recipe.operators
            and node.name not in self.recipe.exclude_nodes
            and any(name in noise for name in (*node.input, *node.output))
        }
        return tuple(sorted(scores, key=lambda name: (scores[name], name)))


def keep_worst_float(trial: Trial, least_db: float | None, report: Report) -> tuple[Trial, Mapping[str, Any]]:
    """The trial without the fewest nodes for which the outputs reach `least_db`, and the facts. Raises `StageError`.

    Of outputs without floating-point numbers nothing can be measured: then no node is kept, and `sqnr_db` is None.
    """
    least = DEFAULT_SQNR_DB if least_db is None else least_db
    given, trial = trial.loaded, replace(trial, loaded=replace(trial.loaded, named=True))
    clean = run_clean(trial.loaded.path, trial.samples)
    if not clean[0]:
        return replace(trial, loaded=given), {"kept_nodes": [], "sqnr_db": None, "least_sqnr_db": least}
    noise = trial.noise(clean)
    kept: tuple[str, ...] = ()
    if decibels(noise) < least:
        kept, noise = _Search(trial, clean, least, report).run(decibels(noise))
    facts = {"kept_nodes": list(kept), "sqnr_db": round(decibels(noise), 2), "least_sqnr_db": least}
    recipe = replace(trial.recipe, exclude_nodes=(*trial.recipe.exclude_nodes, *kept))
    own_names = {node.name for node in given.read_structure().graph.node}
    loaded = given if own_names.issuperset(kept) else trial.loaded
    return replace(trial, recipe=recipe, loaded=loaded), facts


@dataclass(slots=True)
class _Search:
    trial: Trial
    clean: Clean
    least: float
    report: Report
    groups: list[tuple[tuple[str, ...], np.ndarray]] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    trials: int = 0

    def run(self, before: float) -> tuple[tuple[str, ...], np.ndarray]:
        """The nodes to keep, and the remaining noise. `before` is the noise with all nodes quantised."""
        ranked = self.trial.ranked()
        for names in _parts(ranked, _GROUPS):
            self._measure(names)
        half = self._worst_half()
        noise = self._try(half)
        if decibels(noise) < self.least:
            raise _describe_failure(len(half), len(ranked), before, decibels(noise), self.least)
        return self._narrow(len(half)) or (half, noise)

    def _narrow(self, most: int) -> tuple[tuple[str, ...], np.ndarray] | None:
        """Fewer than `most` nodes that are enough, if a few trials find them."""
        allowed = 10 ** (-self.least / 10)
        while True:
            while len(self.groups) > 1 and sum(noise for _, noise in self.groups).max() > allowed:  # type: ignore[union-attr]
                self._take_worst()
            if len(self.kept) >= most or self.trials >= _MAX_TRIALS:
                return None
            noise = self._try(tuple(self.kept))
            if decibels(noise) >= self.least:
                return tuple(sorted(self.kept)), noise
            if len(self.groups) <= 1:
                return None
            allowed *= _TIGHTER

    def _worst_half(self) -> tuple[str, ...]:
        """The noisier half of the groups that were measured first."""
        worst = sorted(self.groups, key=lambda group: -float(group[1].max()))[: (len(self.groups) + 1) // 2]
        return tuple(sorted(name for names, _ in worst for name in names))

    def _take_worst(self) -> None:
        worst = max(range(len(self.groups)), key=lambda place: float(self.groups[place][1].max()))
        names, _ = self.groups.pop(worst)
        if len(names) == 1 or self.trials + 2 >= _MAX_TRIALS:
            self.kept.extend(names)
            return
        for half in _parts(names, 2):
            self._measure(half)

    def _measure(self, names: tuple[str, ...]) -> None:
        self._report_trial(f"the noise of {len(names)} nodes alone")
        self.groups.append((names, self.trial.noise(self.clean, only=names)))

    def _try(self, kept: tuple[str, ...]) -> np.ndarray:
        self._report_trial(f"{len(kept)} nodes in floating point")
        return self.trial.noise(self.clean, kept=kept)

    def _report_trial(self, what: str) -> None:
        self.trials += 1
        share = min(1.0, self.trials / _MAX_TRIALS)
        self.report(_START + (_END - _START) * share, f"trial {self.trials} of at most {_MAX_TRIALS}: {what}")


def _describe_failure(half: int, total: int, before: float, after: float, least: float) -> StageError:
    return StageError(
        f"keeping nodes in floating point does not reach {least:g} dB",
        details=(
            f"all {total} nodes quantised: {before:.1f} dB",
            f"the worst {half} in floating point: {after:.1f} dB",
        ),
        hint="try `per_channel`, another calibration, 16-bit activations (`static-a16w8`), or another method",
    )


def _parts(names: tuple[str, ...], count: int) -> list[tuple[str, ...]]:
    size = max(1, -(-len(names) // count))
    return [names[start : start + size] for start in range(0, len(names), size)]


Clean = Sequence[Mapping[str, np.ndarray]]
"""The original model's outputs of floating-point numbers, for each of the first samples."""


def run_clean(path: Path, samples: GoldenSet) -> Clean:
    """The original model's outputs for the first samples."""
    session = open_session(path, SessionSettings(), error=StageError)
    outputs = [output.name for output in session.get_outputs()]
    found = []
    for sample in samples.first(MAX_SAMPLES):
        values = zip(outputs, run_sample(session, sample, outputs), strict=True)
        found.append(
            {name: value for name, value in values if isinstance(value, np.ndarray) and value.dtype.kind == "f"}
        )
    return found


def output_noise(clean: Clean, quantized_path: Path, samples: GoldenSet) -> np.ndarray:
    """Each output's noise power by its signal power, over the first samples."""
    session = open_session(quantized_path, SessionSettings(), error=StageError)
    names = list(clean[0])
    noises = [Noise() for _ in names]
    for sample, values in zip(samples.first(MAX_SAMPLES), clean, strict=True):
        for name, noise, noisy in zip(names, noises, run_sample(session, sample, names), strict=True):
            _add_noise(noise, values[name], noisy)
    return np.array([_power_ratio(noise) for noise in noises])


def _add_noise(noise: Noise, clean: np.ndarray, noisy: np.ndarray) -> None:
    """Add the finite values. Noise is infinite where the shape or the places of the others (masks) differ."""
    finite = np.isfinite(clean)
    same = clean.shape == noisy.shape and np.array_equal(finite, np.isfinite(noisy))
    if same and np.array_equal(clean[~finite], noisy[~finite], equal_nan=True):
        noise.add(clean[finite], noisy[finite])
    else:
        noise.noise = math.inf


def _power_ratio(noise: Noise) -> float:
    if math.isinf(noise.noise):
        return math.inf
    return noise.noise / noise.signal if noise.signal else 0.0


def decibels(noise: np.ndarray) -> float:
    """The lowest ratio of signal to noise of any output, in dB."""
    return float(-10 * np.log10(max(float(noise.max(initial=0.0)), 1e-30)))
