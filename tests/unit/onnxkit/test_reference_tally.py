"""Figures of recorded outputs: their signal, whether they look like scores, and what cannot be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bundler.model.reference import ReferenceFigures
from bundler.onnxkit.reference_tally import ReferenceTally

RANDOM = np.random.default_rng(3)


def describe(*values: Any, quantity: bool = False, stable: bool = True) -> ReferenceFigures:
    tally = ReferenceTally(name="y", quantity=quantity)
    for value in values:
        tally.add(value)
    return tally.figures(stable=stable)


@settings(deadline=None)
@given(
    values=st.lists(hnp.arrays(np.float32, 6, elements=st.floats(-100, 100, width=32)), min_size=1, max_size=5),
    offset=st.sampled_from([0.0, 1000.0]),
)
def test_the_signal_is_what_is_left_without_the_mean(values: list[np.ndarray], offset: float) -> None:
    shifted = [value.astype(np.float64) + offset for value in values]
    found, every = describe(*shifted), np.concatenate(shifted)
    if found.signal is None:
        assert np.ptp(every) <= 1e-6 * np.abs(every).max()
    else:
        assert found.signal == pytest.approx(float(np.square(every - every.mean()).sum()), rel=1e-9)
        assert min(found.signals) > 0


def test_a_blank_sample_is_compared_with_the_signal_of_others() -> None:
    usual = [RANDOM.standard_normal(100) for _ in range(9)]
    found = describe(*usual, np.zeros(100))
    assert found.signals[-1] == pytest.approx(np.quantile(found.signals, 0.1), rel=0.5)
    loud = describe(usual[0] * 1000, *usual[1:])
    assert loud.signals[0] > 1e5 * max(loud.signals[1:])


def test_single_numbers_are_compared_with_their_spread() -> None:
    found = describe(*(np.array([[value]]) for value in (1.0, 2.0, 3.0, 4.0, 100.0)))
    assert min(found.signals) == pytest.approx(2.5)  # the median squared distance from the middle one


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([np.zeros((0, 4))], "empty"),
        ([None], "empty"),
        ([[]], "empty"),
        ([np.full(3, np.nan), np.full(3, np.inf)], "NaN or infinite everywhere"),
        ([np.zeros(3), np.full(3, 1e-6)], "almost zero"),
        ([np.full(3, 7.5), np.full(4, 7.5)], "it is 7.5 everywhere"),
        ([np.array([4, 4]), np.array([4, 4])], "the same value everywhere"),
        ([np.array(["a", "a"], object)], "the same value everywhere"),
        ([np.array([True, True])], "the same value everywhere"),
    ],
)
def test_outputs_that_cannot_be_compared_have_a_reason(values: list[Any], why: str) -> None:
    assert why in describe(*values).unjudged


@pytest.mark.parametrize(
    "values",
    [
        [np.array([1.0, 2.0])],
        [np.array([4.0])],
        [np.array([4, 5])],
        [np.array([4]), np.array([5])],
        [np.array(["a", "b"], object)],
        [np.array([np.nan, 1.0, 2.0])],
        [np.array([1e200, -1e200])],
        [{"a": 0.25, "b": 0.75}],
    ],
)
def test_what_can_differ_can_be_judged(values: list[Any]) -> None:
    assert describe(*values).unjudged == ""


def test_what_is_random_is_not_judged() -> None:
    assert describe(RANDOM.standard_normal(9), stable=False).unjudged == "it differs from run to run"


def confident(rows: int = 50, classes: int = 10, lead: float = 4.0) -> np.ndarray:
    scores = RANDOM.standard_normal((rows, classes))
    scores[np.arange(rows), RANDOM.integers(0, classes, rows)] += lead
    return scores


def test_scores_of_classes_are_distinguished_from_other_numbers() -> None:
    assert describe(confident()).scores
    assert describe(confident().reshape(5, 10, 10)).scores
    assert describe(confident() * 1000, *(confident() for _ in range(9))).scores
    assert not describe(RANDOM.standard_normal((50, 384))).scores  # an embedding
    assert not describe(np.cumsum(RANDOM.standard_normal((50, 64)), axis=1)).scores  # a curve
    assert not describe(RANDOM.standard_normal(50)).scores
    full = np.cumsum(RANDOM.standard_normal((1, 1, 60, 64)), axis=3)
    assert not describe(full, *(confident(10) * 1e-6 for _ in range(3))).scores  # a mask, among almost empty ones
    first = confident()
    first[:, 0] += 100
    assert not describe(first).scores  # always the same place


def softmax(scores: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return found


def test_saturated_outputs_are_named() -> None:
    sure = describe(softmax(100 * confident()))
    assert any("saturated" in doubt for doubt in sure.doubts)
    assert describe(softmax(confident(lead=2.0))).doubts == ()
    mask = describe((RANDOM.standard_normal((1, 1, 64, 64)) > 0).astype(np.float32))
    assert any("within 0.001 of 0 or 1" in doubt for doubt in mask.doubts)


def test_a_constant_output_is_named() -> None:
    fixed = RANDOM.standard_normal(5)
    assert describe(fixed, fixed).doubts == ("it is the same for every sample",)
    assert describe(fixed).doubts == ()


def test_integers_that_are_rounded_numbers_have_a_signal() -> None:
    boxes = RANDOM.integers(0, 640, (20, 4))
    assert describe(boxes).signal is None
    found = describe(boxes, quantity=True)
    assert found.numeric
    assert found.signal == pytest.approx(float(np.square(boxes - boxes.mean()).sum()))


def test_labels_that_are_nearly_all_one_are_named() -> None:
    rare = np.array([True] * 97 + [False] * 3)
    assert any("one-sided: 97% of its values are the same" in doubt for doubt in describe(rare).doubts)
    assert describe(np.array([1, 2, 3, 4])).doubts == ()


def test_numbers_whose_squares_are_nothing_do_not_end_the_recording() -> None:
    found = describe(np.array([1e-170, -1e-170, 3e-170]))
    assert "almost zero" in found.unjudged


def test_a_box_beside_scores_is_no_row_of_scores_and_a_masked_class_is_passed_over() -> None:
    random = np.random.default_rng(5)
    scores = random.standard_normal((60, 6)) + 8 * np.eye(6)[random.integers(0, 6, 60)]
    boxes = 300 * random.random((60, 4))
    mixed, masked = ReferenceTally(name="y"), ReferenceTally(name="y")
    mixed.add(np.concatenate([boxes, scores], axis=1))
    masked.add(np.concatenate([scores, np.full((60, 1), -np.inf)], axis=1))
    assert not mixed.figures().scores
    assert masked.figures().scores


def test_quiet_samples_are_counted() -> None:
    random = np.random.default_rng(5)

    def doubts(quiet: int) -> tuple[str, ...]:
        tally = ReferenceTally(name="y")
        for number in range(40):
            tally.add(random.standard_normal((1, 20)) * (0.002 if number < quiet else 1.0))
        return tally.figures().doubts

    assert doubts(1) == ()
    (quiet,) = doubts(8)
    assert quiet.startswith("in 8 of 40 samples its signal is below a hundredth of the usual, and errors there")


@pytest.mark.parametrize("seed", range(20))
def test_one_sample_of_large_values_makes_no_other_unit_of_its_columns(seed: int) -> None:
    random, tally = np.random.default_rng(seed), ReferenceTally(name="y")
    for number in range(10):
        rows = random.standard_normal((50, 10)) + 4 * np.eye(10)[random.integers(0, 10, 50)]
        tally.add(rows * (1000 if number == 0 else 1))
    assert tally.figures().scores


@pytest.mark.parametrize("seed", range(20))
def test_a_number_near_the_middle_of_the_others_is_no_quiet_sample(seed: int) -> None:
    random = np.random.default_rng(seed)
    assert describe(*random.uniform(0.1, 0.9, (9, 1))).doubts == ()
