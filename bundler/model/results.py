"""The results of steps and of comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bundler.model.artifacts import Artifact
from bundler.model.codec import decode
from bundler.model.reference import ReferenceFigures
from bundler.model.stage import Note

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """A step's result: `folder` has the artifact's files (None when it made none), `entry` is the file in it that later
    steps open. For a stage that passed its model through, both are those of its input. `ingredients` are the values
    that its key was computed from. `seconds` and `cached` vary from run to run and are never in a bundle.
    """

    step: str
    stage: str
    key: str
    artifact: Artifact | None
    folder: Path | None
    entry: str | None
    facts: Mapping[str, Any]
    notes: tuple[Note, ...]
    ingredients: Mapping[str, Any]
    seconds: float
    cached: bool

    @property
    def path(self) -> Path:
        """The entry file. Raises `ValueError` when the step made none."""
        if self.folder is None or self.entry is None:
            raise ValueError(f"step {self.step} made no artifact")
        return self.folder / self.entry

    def read_facts(self, kind: type[T]) -> T:
        """The facts as the type that the stage's spec names."""
        return decode(kind, self.facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputComparison:
    """One output against its reference, over all golden samples. Errors are in the output's own unit.

    `sqnr_db` is the signal to noise ratio over all samples, with the mean of the set left out of the signal (see
    `ReferenceFigures.signal`), `worst_sqnr_db` that of the worst sample, and `low_sqnr_db` what all samples reach but
    for a tenth (and at least one of several). Each is None where there is no noise, and without a signal.
    `typical_sqnr_db` is the ratio without the constant part, that is, what no input changes
    (`bundler.onnxkit.trivial_outputs`).
    `cosine` is None when a norm is zero; `top1_agreement`, the share of rows along the last axis whose highest value
    stays at its place, where the output has no such rows. `mismatch` says why two outputs could not be compared at all
    (shape, type, NaN pattern). `max_relative` looks only at elements whose reference is not zero. `envelope` holds the
    few (|reference|, error) from which any pair of absolute and relative limits can be judged for every element.
    `agreement` is the share of equal values of an output of integers, booleans or strings (None for others), and
    `difference` names the first that differs. `worst_sample` is the sample that is furthest from its reference (empty
    where all are equal). Of a stream, `step_sqnr_db` is the ratio of each step (None: no noise, or no signal).
    """

    name: str
    equal: bool
    max_absolute: float
    mean_absolute: float
    max_relative: float
    cosine: float | None
    sqnr_db: float | None
    top1_agreement: float | None
    mismatch: str | None = None
    envelope: tuple[tuple[float, float], ...] = ()
    agreement: float | None = None
    difference: str = ""
    worst_sample: str = ""
    low_sqnr_db: float | None = None
    typical_sqnr_db: float | None = None
    worst_sqnr_db: float | None = None
    reference: ReferenceFigures | None = None
    step_sqnr_db: tuple[float | None, ...] = ()


def restore_output(reported: Mapping[str, Any], unjudged: str) -> OutputComparison:
    """An output as a loader reports it. One that could not be judged, for the reason `unjudged`, has no figures: it
    counts as not equal, and its reference has the reason. Raises `TypeError` for other keys.
    """
    if not unjudged:
        return OutputComparison(**reported)
    nothing = {"equal": False, "max_absolute": 0.0, "mean_absolute": 0.0, "max_relative": 0.0}
    reference = ReferenceFigures(name=reported["name"], unjudged=unjudged)
    return OutputComparison(**{**reported, **nothing, "reference": reference})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All outputs of one stage (or of a bundle) against the golden set."""

    outputs: tuple[OutputComparison, ...]
    samples: int

    @property
    def equal(self) -> bool:
        """Whether every output is bit-identical."""
        return all(output.equal for output in self.outputs)
