"""Which of the attempts at a precision ships, and which methods are not even tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bundler.model.attempts import Attempt
from bundler.pipeline.precision_choice import (
    choose_method,
    describe_attempt,
    explain_choice,
    explain_loss,
    is_bound,
    order_search,
)

ORIGINAL = Attempt(method="none", title="", state="passed", model_bytes=90_000_000, ratio=1.0)


def timed(method: str, ratio: float, spread: float = 0.02, megabytes: float = 80, rounds: int = 9) -> Attempt:
    """An attempt that met the gate."""
    return Attempt(
        method=method,
        title="",
        state="passed",
        model_bytes=round(megabytes * 1e6),
        ratio=ratio,
        low=ratio - spread,
        high=ratio + spread,
        rounds=rounds,
        processor_ratio=ratio,
    )


def test_the_fastest_is_chosen() -> None:
    attempts = [ORIGINAL, timed("dynamic-int8", 0.4), timed("static-int8", 0.5, megabytes=20)]
    assert choose_method(attempts) == "dynamic-int8"
    assert explain_choice(attempts, "dynamic-int8") == "the fastest that meets the gate"


@pytest.mark.parametrize(("spread", "rounds"), [(0.15, 9), (0.02, 6)])
def test_a_difference_within_its_interval_counts_as_none(spread: float, rounds: int) -> None:
    attempts = [ORIGINAL, timed("dynamic-int8", 0.89, spread, megabytes=85, rounds=rounds)]
    assert choose_method(attempts) == "none"
    assert (
        explain_choice(attempts, "none")
        == "no method that meets the gate makes it faster, or smaller by 10% and 1 MB and no slower"
    )


@pytest.mark.parametrize(("megabytes", "chosen"), [(0.3, "none"), (0.19, "none"), (10, "weights-8bit")])
def test_no_accuracy_is_given_for_a_size_that_nobody_notices(megabytes: float, chosen: str) -> None:
    """A small model halved saves some 100 kB."""
    original = replace(ORIGINAL, model_bytes=round(2 * megabytes * 1e6))
    assert choose_method([original, timed("weights-8bit", 1.0, megabytes=megabytes)]) == chosen


def test_a_difference_outside_its_interval_counts() -> None:
    assert choose_method([ORIGINAL, timed("dynamic-int8", 0.89, 0.05)]) == "dynamic-int8"


def test_of_those_that_are_as_fast_the_smallest_is_chosen() -> None:
    attempts = [ORIGINAL, timed("dynamic-int8", 0.95, 0.2, megabytes=23), timed("weights-8bit", 0.97, 0.2)]
    assert choose_method(attempts) == "dynamic-int8"
    assert explain_choice(attempts, "dynamic-int8") == (
        "the smallest of the fastest that meet the gate; no difference in latency shown to the original model, "
        "weights-8bit"
    )


def test_a_slower_model_is_not_as_fast_however_wide_its_interval() -> None:
    assert explain_choice([ORIGINAL], "none") == "no method meets the gate"
    assert choose_method([ORIGINAL, timed("weights-4bit", 1.3, 0.5, megabytes=12)]) == "none"


def test_methods_that_another_one_bounds_are_tried_last() -> None:
    methods = ("none", "static-int8", "static-int8-percentile", "static-int8-mixed", "weights-8bit")
    assert order_search(methods) == [
        *("none", "static-int8", "weights-8bit", "static-int8-percentile", "static-int8-mixed")
    ]
    assert is_bound("static-int8", methods)
    assert not is_bound("weights-8bit", methods)


def test_where_the_plain_method_meets_the_gate_no_variation_of_it_is_tried() -> None:
    reason = "static-int8 meets the gate, and this method is at best as fast and as small"
    for method in ("static-int8-percentile", "static-int8-mixed"):
        assert explain_loss(method, [ORIGINAL, timed("static-int8", 0.9)], None) == reason


def failed(ratio: float, megabytes: float, spread: float = 0.02) -> Attempt:
    return replace(timed("static-int8", ratio, spread, megabytes), state="failed", reason="SQNR")


def test_a_search_that_could_not_replace_what_was_found_is_not_tried() -> None:
    before = [ORIGINAL, timed("dynamic-int8", 0.4, megabytes=23), failed(0.5, 26)]
    assert explain_loss("static-int8-mixed", before, None) == (
        "at best like static-int8 (0.50 of the latency (0.48 to 0.52), 0.50 of the CPU time), "
        "which is not shown to be better than dynamic-int8"
    )


def test_a_search_that_would_be_better_by_less_than_the_intervals_is_not_tried() -> None:
    before = [ORIGINAL, timed("dynamic-int8", 0.4, 0.08, megabytes=23), failed(0.3, 26, spread=0.03)]
    assert "not shown to be better" in explain_loss("static-int8-mixed", before, None)


@pytest.mark.parametrize("plain", [failed(0.3, 26), failed(0.41, 20), replace(failed(0.5, 26), ratio=None)])
def test_a_search_that_may_be_better_is_tried(plain: Attempt) -> None:
    before = [ORIGINAL, timed("dynamic-int8", 0.4, megabytes=23), plain]
    assert explain_loss("static-int8-mixed", before, None) == ""


@pytest.mark.parametrize("state", ["passed", "failed"])
def test_where_int8_is_slower_more_nodes_in_floating_point_may_be_faster(state: str) -> None:
    slow = replace(timed("static-int8", 1.35, megabytes=20), state=state)
    assert explain_loss("static-int8-mixed", [ORIGINAL, slow], None) == ""
    assert "static-int8" in explain_loss("static-int8-percentile", [ORIGINAL, slow], None)


def test_a_plain_method_that_is_not_shown_to_be_slower_bounds_its_variations() -> None:
    doubtful = timed("static-int8", 1.1, 0.2)
    assert "at best as fast" in explain_loss("static-int8-mixed", [ORIGINAL, doubtful], None)


def test_a_search_is_not_tried_where_even_the_plain_method_is_over_the_budget() -> None:
    assert "over the size budget" in explain_loss("static-int8-mixed", [ORIGINAL, failed(0.3, 26)], 25)
    assert explain_loss("static-int8-mixed", [ORIGINAL, failed(0.3, 26)], 27) == ""


def test_nothing_bounds_a_method_whose_plain_one_was_not_tried_or_not_made() -> None:
    broken = Attempt(method="static-int8", title="", state="broken", reason="not finite")
    assert explain_loss("static-int8-mixed", [ORIGINAL], None) == ""
    assert explain_loss("static-int8-mixed", [ORIGINAL, broken], 1) == ""
    assert explain_loss("dynamic-int8", [ORIGINAL], None) == ""


def test_the_line_of_an_attempt_has_its_figures_or_its_reason() -> None:
    found = timed("dynamic-int8", 0.89, 0.15, megabytes=23)
    assert describe_attempt(found) == (
        "dynamic-int8: gate met, 23.0 MB, 0.89 of the latency (0.74 to 1.04), no difference shown, 0.89 of the CPU time"
    )
    skipped = Attempt(method="static-int8", title="", state="skipped", reason="it needs calibration data")
    assert describe_attempt(skipped) == "static-int8: not tried: it needs calibration data"
    assert describe_attempt(ORIGINAL) == "none: gate met, 90.0 MB"
