"""Numbers as people read them, and axes that hold every value."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.reporting.data import summarize_series
from bundler.reporting.figures import show_bytes, show_error, show_milliseconds, show_percent, show_tick
from bundler.reporting.scales import linear_scale, log_scale
from bundler.reporting.speed import compare_medians


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (588_320, "588 kB"),
        (999_700, "1.00 MB"),
        (1_536_000_000, "1.54 GB"),
    ],
)
def test_sizes_have_three_digits(size, text):
    assert show_bytes(size) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.4167, "0.42 ms"), (9.996, "10.0 ms"), (156.2, "156 ms"), (999.7, "1.00 s"), (2310, "2.31 s")]
)
def test_times_have_three_digits(value, text):
    assert show_milliseconds(value) == text


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
    assert compare_medians(summarize_series([before]), summarize_series([after]))[0] == words


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
