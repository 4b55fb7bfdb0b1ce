"""The user's own metric is judged in his own terms."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bundler.stages.measure_metric.spec import Facts
from bundler.verification.metric import MetricGate, check_metric

NUMBERS = st.floats(-1e6, 1e6)


def judge(value: float, reference: float, **limits: float | None) -> tuple[str, ...]:
    facts = Facts(value=value, reference=reference, samples=64)
    return check_metric("metric.py:accuracy", facts, MetricGate(**limits))


def test_both_limits_are_reported_with_what_was_found() -> None:
    assert judge(0.91, 0.97, least=0.95, drop=0.01) == (
        "metric.py:accuracy: 0.91 over 64 samples (min 0.95)",
        "metric.py:accuracy: 0.91 over 64 samples, 0.06 below the original model's 0.97 (max 0.01)",
    )


def test_a_model_that_never_reached_the_limit_says_so() -> None:
    assert judge(0.9, 0.9, least=0.95) == (
        "metric.py:accuracy: 0.9 over 64 samples (min 0.95); the original model has 0.9",
    )


def test_a_loss_of_just_what_is_allowed_passes() -> None:
    assert judge(0.96, 0.97, drop=0.01) == ()
    assert judge(0.98, 0.97, least=0.98, drop=0.0) == ()


@given(value=NUMBERS, reference=NUMBERS, least=NUMBERS, drop=st.floats(0, 1e6), more=st.floats(0, 1e6))
def test_a_looser_limit_never_fails_what_passed(
    value: float, reference: float, least: float, drop: float, more: float
) -> None:
    if judge(value, reference, least=least, drop=drop) == ():
        for looser in ({"least": least - more, "drop": drop + more}, {"least": None, "drop": drop}, {"least": least}):
            assert judge(value, reference, **looser) == ()
