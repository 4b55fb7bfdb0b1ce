"""Compare the outputs of a half-precision model with their reference, and check them against a gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bundler.model.gates import check_gate
from bundler.model.results import Comparison, OutputComparison
from bundler.model.runtime import Gate
from bundler.onnxkit.metrics import Tally
from bundler.onnxkit.reference_tally import ReferenceTally
from bundler.onnxkit.value_files import Value


@dataclass(slots=True)
class Judgement:
    """All outputs of a model against a gate, sample by sample."""

    gate: Gate
    tallies: dict[str, Tally] = field(default_factory=dict)
    references: dict[str, ReferenceTally] = field(default_factory=dict)

    def add(self, reference: Mapping[str, Value], actual: Mapping[str, Value]) -> None:
        """Add one sample."""
        for name, value in reference.items():
            self.tallies.setdefault(name, Tally(name=name)).add(value, actual[name])
            self.references.setdefault(name, ReferenceTally(name=name)).add(value)

    def holds(self) -> bool:
        """Whether every output meets the gate."""
        outputs = self._results()
        return not check_gate(Comparison(outputs=outputs, samples=0), self.gate)

    def _results(self) -> tuple[OutputComparison, ...]:
        return tuple(tally.result(self.references[name].figures()) for name, tally in self.tallies.items())

    def facts(self) -> dict[str, Any]:
        """The figures of every output."""
        return {
            output.name: {
                "comparable": output.mismatch is None,
                "max_absolute": output.max_absolute,
                "sqnr_db": output.sqnr_db,
                "cosine": output.cosine,
                "top1_agreement": output.top1_agreement,
            }
            for output in self._results()
        }
