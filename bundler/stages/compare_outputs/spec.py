"""Inputs and facts of the stage `compare_outputs`."""

from __future__ import annotations

from bundler.model.results import Comparison
from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="compare_outputs",
    title="Compare the outputs that a bundle gave",
    inputs=("golden", "outputs"),
    produces=None,
    packages=("numpy",),
    facts=Comparison,
    least_time=900.0,
)
"""`outputs` is an index in the form of the golden set's, with the outputs of its first samples, and without inputs.

Facts: `bundler.model.results.Comparison` of those samples, encoded.
"""
