"""The gate says which output misses which limit, and by how much."""

from __future__ import annotations

import dataclasses
from typing import Any

from bundler.model.results import Comparison, OutputComparison
from bundler.model.runtime import Gate, Tolerance
from bundler.verification.gates import check_gate

TOLERANCE = Tolerance(absolute=1e-4, relative=1e-3, sqnr_db=40.0, cosine=0.999, top1_agreement=0.9)


def output(**figures: Any) -> OutputComparison:
    good: dict[str, Any] = {
        "name": "scores",
        "equal": False,
        "max_absolute": 5e-5,
        "mean_absolute": 1e-5,
        "max_relative": 1e-4,
        "cosine": 1.0,
        "sqnr_db": 80.0,
        "top1_agreement": 1.0,
        "envelope": ((0.5, 5e-5),),
    }
    return OutputComparison(**(good | figures))


def failures(*outputs: OutputComparison, unstable: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    found = check_gate(Comparison(outputs=outputs, samples=3), Gate(default=TOLERANCE), unstable)
    return [(failure.output, failure.figure) for failure in found]


def test_a_close_output_passes() -> None:
    assert failures(output(), output(equal=True, max_absolute=0.0, envelope=(), sqnr_db=None)) == []


def test_each_figure_has_its_own_limit() -> None:
    assert failures(output(sqnr_db=39.9)) == [("scores", "sqnr_db")]
    assert failures(output(cosine=0.99)) == [("scores", "cosine")]
    assert failures(output(top1_agreement=0.5)) == [("scores", "top1_agreement")]
    assert failures(output(mismatch="is float32[1] instead of float32[2]")) == [("scores", "mismatch")]


def test_an_error_is_judged_where_it_stands() -> None:
    assert failures(output(max_absolute=0.05, envelope=((100.0, 0.05),))) == []
    assert failures(output(max_absolute=0.05, envelope=((1.0, 0.002), (100.0, 0.05)))) == [("scores", "error")]


def test_without_an_envelope_the_gate_is_never_too_mild() -> None:
    assert failures(output(max_absolute=2e-4, envelope=())) == [("scores", "error")]
    assert failures(output(max_absolute=1e-4, envelope=())) == []


def test_figures_that_do_not_exist_are_not_judged() -> None:
    assert failures(output(cosine=None, sqnr_db=None, top1_agreement=None)) == []


def test_unstable_outputs_must_only_have_their_type_and_shape() -> None:
    far = output(name="noise", max_absolute=9.0, sqnr_db=-3.0, envelope=((0.0, 9.0),))
    assert failures(far, unstable=("noise",)) == []
    assert failures(output(name="noise", mismatch="is empty instead of a tensor"), unstable=("noise",)) == [
        ("noise", "mismatch")
    ]


def test_the_text_names_output_worst_and_limit() -> None:
    wrong = output(name="boxes", max_absolute=0.5, sqnr_db=12.25, envelope=((2.0, 0.5),))
    found = check_gate(Comparison(outputs=(wrong,), samples=1), Gate(default=TOLERANCE))
    assert [failure.text for failure in found] == [
        "output 'boxes': error 0.5 where the reference is 2, at most 0.0021 allowed (0.0001 + 0.001 of the reference)",
        "output 'boxes': SQNR in dB 12.25, at least 40 wanted",
    ]
    assert (found[1].limit, found[1].worst) == (40.0, 12.25)


def test_rounding_of_an_output_that_is_all_but_zero_is_no_noise() -> None:
    output = OutputComparison(
        name="mask",
        equal=False,
        max_absolute=1.5e-7,
        mean_absolute=1e-8,
        max_relative=0.1,
        cosine=0.99,
        sqnr_db=19.6,
        top1_agreement=None,
    )
    tolerance = Tolerance(absolute=1e-4, relative=1e-3, sqnr_db=40.0, cosine=0.999)
    assert check_gate(Comparison(outputs=(output,), samples=1), Gate(default=tolerance)) == ()
    strict = dataclasses.replace(tolerance, absolute=1e-8)
    assert check_gate(Comparison(outputs=(output,), samples=1), Gate(default=strict))
