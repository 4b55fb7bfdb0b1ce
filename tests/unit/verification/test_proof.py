"""A bundle never claims more than was done for every one of its variants."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.model.proof import VariantProof
from bundler.model.results import Comparison, restore_output
from bundler.verification.proof import LEVELS, combine_proofs, reaches

FIGURES = ("equal", "max_absolute", "mean_absolute", "max_relative", "cosine", "sqnr_db", "top1_agreement")


def prove(variant="cpu", level="executed", *, passed=True, reason=""):
    return VariantProof(variant=variant, level=level, passed=passed, comparison=None, reason=reason, figures={})


def test_one_variant_that_ran_is_the_bundles_level():
    record = combine_proofs([prove()])
    assert (record.level, record.reason) == (
        "executed",
        "the golden set was reproduced in the bundle's own runtime",
    )


def test_nothing_run_claims_nothing():
    assert combine_proofs([]).level == "resolved"


def test_a_preferred_variant_that_did_not_run_lowers_the_bundle():
    record = combine_proofs([prove("htp", passed=None, reason="this machine has no NPU"), prove("cpu")])
    assert (record.level, record.reason) == ("resolved", "variant htp was not run: this machine has no NPU")
    assert [variant.level for variant in record.variants] == ["resolved", "executed"]


def test_a_fallback_under_emulation_lowers_the_bundle():
    assert combine_proofs([prove("cpu"), prove("gpu", "emulated")]).level == "emulated"


def test_a_failed_run_is_no_proof_and_says_so():
    record = combine_proofs([prove(passed=False)])
    assert record.level == "resolved"
    assert record.reason == "variant cpu failed its golden set: it ran and did not reproduce the golden set"


@pytest.mark.parametrize("samples", [0, 3])
def test_a_golden_set_without_samples_or_outputs_verifies_nothing(samples):
    record = combine_proofs([replace(prove(), comparison=Comparison(samples=samples, outputs=()))])
    assert record.level == "ran-unchecked"
    assert "not checked: the golden set has no values to compare with" in record.variants[0].reason


def test_an_output_that_the_comparison_could_not_judge_counts_though_the_manifest_keeps_silent():
    reported = {"name": "y", "mismatch": None, **dict.fromkeys(FIGURES)}
    comparison = Comparison(samples=3, outputs=(restore_output(reported, "it is held to nothing"),))
    record = combine_proofs([replace(prove(), comparison=comparison)])
    assert record.level == "ran-unchecked"
    assert record.variants[0].reason.endswith("; not checked: output 'y' (it is held to nothing)")


@pytest.mark.parametrize(("low", "high"), tuple(itertools.pairwise(LEVELS)))
def test_levels_are_ordered(low, high):
    assert reaches(high, low)
    assert not reaches(low, high)


@given(
    st.lists(st.builds(prove, level=st.sampled_from(LEVELS), passed=st.sampled_from([True, False, None])), max_size=5)
)
def test_the_claim_holds_for_every_variant(proofs):
    record = combine_proofs(proofs)
    for proof in proofs:
        assert reaches(proof.level, record.level)
        assert proof.passed or record.level == "resolved"
