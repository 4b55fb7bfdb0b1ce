"""Numbers as people read them, and axes that hold every value."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.reporting.claims import (
    BUSY,
    LEAST_RUNS,
    NO_DIFFERENCE,
    TOO_BUSY,
    TOO_FEW,
    compare_medians,
    doubt_ratio,
)
from bundler.reporting.data import summarize_series
from bundler.reporting.figures import show_error, show_percent, show_tick
from bundler.reporting.scales import linear_scale, log_scale
from bundler.support.text import format_bytes, format_milliseconds


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (588_320, "588 kB"),
        (999_700, "1.0 MB"),
        (163_700_000, "163.7 MB"),
        (999_960_000, "1.00 GB"),
        (1_536_000_000, "1.54 GB"),
    ],
)
def test_sizes_are_short(size, text):
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.4167, "0.42 ms"), (9.996, "10.0 ms"), (156.2, "156 ms"), (999.7, "1.00 s"), (2310, "2.31 s")]
)
def test_times_have_three_digits(value, text):
    assert format_milliseconds(value) == text


def test_changes_are_signed():
    assert show_percent(59, 100) == "\N{MINUS SIGN}41 %"
    assert show_percent(103, 100) == "+3 %"
    assert show_percent(100.2, 100) == "no change"
    assert show_percent(5, 0) == ""
    assert show_percent(3_713_973, 15_618) == "238\N{MULTIPLICATION SIGN}"


def test_axis_labels_drop_what_says_nothing():
    assert [show_tick(text) for text in ("0.00 ms", "10.0 ms", "200 kB", "1.50 s", "1e-7")] == [
        "0", "10 ms", "200 kB", "1.5 s", "1e-7",
    ]  # fmt: skip


def test_a_missing_error_is_a_dash_and_zero_is_zero():
    assert (show_error(None), show_error(0.0), show_error(2.44e-7)) == ("\N{EN DASH}", "0", "2.4e-07")


def test_the_spread_of_a_series():
    spread = summarize_series([3.0, 1.0, 2.0, 5.0, 4.0, math.nan])
    assert spread is not None
    assert (spread.low, spread.median, spread.high, spread.count) == (pytest.approx(1.4), 3.0, pytest.approx(4.6), 5)
    assert summarize_series([]) is None


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [(2.0, 1.0, "2 times faster"), (1.0, 1.5, "1.5 times slower"), (1.0, 1.02, "as fast as before"), (0.0, 1.0, "")],
)
def test_medians_are_compared_in_words(before, after, words):
    assert compare_medians(summarize_series([before] * LEAST_RUNS), summarize_series([after] * LEAST_RUNS))[0] == words


def test_fewer_runs_than_stated_claim_nothing():
    fast, slow = summarize_series([1.0] * LEAST_RUNS), summarize_series([2.0] * (LEAST_RUNS - 1))
    assert compare_medians(slow, fast) == (TOO_FEW, "plain")
    assert compare_medians(fast, slow) == (TOO_FEW, "plain")


def test_series_that_overlap_show_no_difference():
    before = summarize_series([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7])
    after = summarize_series([0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4])
    assert compare_medians(before, after) == (NO_DIFFERENCE, "plain")


def test_a_busy_machine_shows_no_difference():
    before, after = summarize_series([2.0] * LEAST_RUNS), summarize_series([1.0] * LEAST_RUNS)
    assert compare_medians(before, after, BUSY + 0.01) == (TOO_BUSY, "plain")
    assert compare_medians(before, after, BUSY)[1] == "good"


@given(st.lists(st.floats(min_value=1, max_value=2), min_size=LEAST_RUNS, max_size=30), st.randoms())
def test_two_halves_of_one_series_are_never_reported_as_different_by_more_than_their_spread(values, random):
    shuffled = random.sample(values, len(values))
    words, tone = compare_medians(summarize_series(values), summarize_series(shuffled))
    assert (words, tone) in ((NO_DIFFERENCE, "plain"), ("as fast as before", "plain"))


@pytest.mark.parametrize(
    ("low", "high", "rounds", "doubt"),
    [
        (0.5, 0.9, 40, ""),
        (1.1, 1.3, 40, ""),
        (0.9, 1.01, 40, NO_DIFFERENCE),
        (0.5, 0.9, LEAST_RUNS - 1, TOO_FEW),
        (None, None, None, ""),
    ],
)
def test_a_ratio_is_doubted_when_its_rounds_are_on_both_sides_of_one(low, high, rounds, doubt):
    assert doubt_ratio(low, high, rounds) == doubt


@given(st.lists(st.floats(min_value=0, max_value=1e12, allow_subnormal=False), min_size=1, max_size=20))
def test_a_linear_axis_holds_every_value(values):
    scale = linear_scale(values, str)
    assert scale.low == 0
    assert scale.high >= max(values) * (1 - 1e-9)
    assert 2 <= len(scale.ticks) <= 6
    assert [tick.at for tick in scale.ticks] == sorted(tick.at for tick in scale.ticks)


@given(st.lists(st.floats(min_value=1e-30, max_value=1e30), max_size=20))
def test_a_logarithmic_axis_holds_every_value(values):
    scale = log_scale(values)
    assert scale.place(0.0) == 0
    for value in values:
        assert 0 < scale.place(value) < 100
    assert 2 <= len(scale.ticks) <= 6
