"""What is advised after a failed verification follows from its reason."""

from __future__ import annotations

from dataclasses import replace

from bundler.emitters.proofs import make_unproven
from bundler.model.results import Comparison, OutputComparison
from bundler.pipeline.finish import _hint_after

UNOPENED = make_unproven("model", "cpu", "the runtime could not open it", passed=False)


def test_no_level_of_optimisation_is_advised_for_a_model_that_did_not_open() -> None:
    assert "--no-prove" in _hint_after((UNOPENED,))
    assert "optimization.level" not in _hint_after((UNOPENED,))


def test_less_optimisation_is_advised_for_outputs_that_differ() -> None:
    output = OutputComparison.__new__(OutputComparison)
    differing = replace(UNOPENED, comparison=Comparison(samples=1, outputs=(output,)))
    assert "--set optimization.level=basic" in _hint_after((differing,))
    assert "--no-prove" in _hint_after((differing, UNOPENED))
