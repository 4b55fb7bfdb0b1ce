"""Compare outputs with a golden set, sample by sample, wherever they were computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bundler.model.reference import ReferenceFigures
from bundler.model.results import Comparison
from bundler.onnxkit.golden import GoldenSet, Sample
from bundler.onnxkit.metrics import Tally
from bundler.onnxkit.reference_tally import tally_references
from bundler.onnxkit.value_files import Value


class GoldenTally:
    """The errors of all outputs of `golden`. An output of the `present` ones without a recorded value is not
    reproduced.
    """

    def __init__(self, golden: GoldenSet, present: Iterable[str]) -> None:
        self._golden = golden
        self._references = dict(golden.references or tally_references(golden))
        for name in present:
            self._references.setdefault(name, ReferenceFigures(name=name))
        self._samples = 0
        self._tallies = [
            Tally(name=name, stable=name not in golden.unstable_outputs, quantity=known.quantity)
            for name, known in self._references.items()
        ]

    def add(self, sample: Sample, actual: Mapping[str, Value]) -> None:
        """Add the outputs for one recorded sample."""
        self._samples += 1
        for tally in self._tallies:
            if tally.name not in actual:
                tally.reject("the model no longer has this output")
            elif tally.name not in sample.outputs:
                tally.reject(f"the golden sample {sample.name} has no recorded value for it")
            else:
                tally.add(sample.outputs[tally.name], actual[tally.name], sample.name)

    def result(self) -> Comparison:
        """The figures so far."""
        by_step = bool(self._golden.state)
        outputs = tuple(tally.result(self._references[tally.name], by_step=by_step) for tally in self._tallies)
        return Comparison(outputs=outputs, samples=self._samples)
