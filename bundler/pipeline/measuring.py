"""How long a build times its bundle, and which bundle it does not time without `--measure`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bundler.model.measurement import BRIEF, BRIEF_SECONDS, USUAL, Timing
from bundler.model.proof import VariantProof
from bundler.pipeline.requests import BuildRequest

LOADS: Final = 4
"""Loads without which nothing is timed: two to settle what the bundle keeps on the device, a timed one, and the
original model's, which is no faster."""

MAX_ESTIMATE: Final = BRIEF_SECONDS / 2
"""Largest estimate in seconds of a bundle that is timed briefly; the other half of the time starts its runtime."""

CALLS: Final = 8
"""Calls that go with them: the first one of each load, one to warm up and one to time of each side."""


def choose_timing(request: BuildRequest) -> Timing:
    """As long as `bundler bench` does with `--measure`, else briefly."""
    return USUAL if request.measure else BRIEF


def explain_too_slow(request: BuildRequest, proofs: Sequence[VariantProof]) -> str:
    """Why the bundle is not timed briefly: its verification has shown how long loads and calls take. Empty where it is
    timed.
    """
    ran = next((proof for proof in proofs if proof.passed and proof.comparison), None)
    if request.measure or ran is None or _estimate_seconds(ran) <= MAX_ESTIMATE:
        return ""
    return f"too slow for the {BRIEF_SECONDS:g} s timing budget of a build; use --measure"


def _estimate_seconds(proof: VariantProof) -> float:
    """The least time for one timed load and one timed call beside those of the original model."""
    samples = proof.comparison.samples if proof.comparison else 0
    call = proof.figures.get("golden_seconds", 0.0) / max(1, samples)
    return LOADS * proof.figures.get("opening_seconds", 0.0) + CALLS * call
