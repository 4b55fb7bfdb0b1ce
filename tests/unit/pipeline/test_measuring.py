"""A build times its bundle briefly, and says which bundle it does not time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundler.model.measurement import BRIEF, BRIEF_SECONDS, USUAL
from bundler.model.proof import VariantProof
from bundler.model.results import Comparison
from bundler.pipeline.measuring import choose_timing, explain_too_slow
from bundler.pipeline.requests import BuildRequest

REQUEST = BuildRequest(model=Path("model.onnx"), target="linux-x64")
AT_LENGTH = BuildRequest(model=Path("model.onnx"), target="linux-x64", measure=True)


def make_proof(*, opening: float, golden: float, passed: bool | None = True) -> VariantProof:
    return VariantProof(
        variant="cpu",
        level="executed",
        passed=passed,
        comparison=Comparison(samples=8, outputs=()) if passed else None,
        reason="",
        figures={"opening_seconds": opening, "golden_seconds": golden},
    )


def test_a_build_times_its_bundle_for_half_a_second_in_all_unless_it_is_asked_for_more():
    assert choose_timing(REQUEST) == BRIEF
    assert BRIEF.in_all == BRIEF_SECONDS
    assert choose_timing(AT_LENGTH) == USUAL


@pytest.mark.parametrize(
    ("opening", "golden", "timed"),
    [(0.015, 0.02, True), (0.2, 0.02, False), (0.01, 0.8, False)],
    ids=["quick", "loads slowly", "computes for long"],
)
def test_a_bundle_whose_loads_and_calls_do_not_fit_is_left_out_with_advice(opening, golden, timed):
    proof = make_proof(opening=opening, golden=golden)
    found = explain_too_slow(REQUEST, (proof,))
    assert (not found) == timed
    assert timed or "use --measure" in found
    assert explain_too_slow(AT_LENGTH, (proof,)) == ""


def test_only_what_ran_says_how_long_it_takes():
    assert explain_too_slow(REQUEST, ()) == ""
    assert explain_too_slow(REQUEST, (make_proof(opening=9, golden=9, passed=None),)) == ""
