"""The gate says which output misses which limit, and by how much."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from bundler.model.gates import check_gate, describe_failures, resolve_gate
from bundler.model.reference import ReferenceFigures
from bundler.model.results import Comparison, OutputComparison
from bundler.model.runtime import Gate, Tolerance

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


def test_a_figure_that_cannot_be_had_never_passes_for_a_good_one() -> None:
    assert failures(output(cosine=None, top1_agreement=None)) == []
    assert failures(output(sqnr_db=None)) == [("scores", "sqnr_db")]
    assert failures(output(sqnr_db=None, max_absolute=0.0, envelope=())) == []


def known(**figures: Any) -> ReferenceFigures:
    return ReferenceFigures(**({"name": "scores", "elements": 400, "signal": 100.0, "peak": 3.0} | figures))


@pytest.mark.parametrize(("peak", "allowed"), [(5.0, 0.889), (0.0, 0.177)])
def test_an_answer_that_is_the_same_everywhere_is_held_against_its_own_size(peak: float, allowed: float) -> None:
    constant = known(signal=None, peak=peak)
    gate = Tolerance(sqnr_db=15.0, low_sqnr_db=10.0, worst_sqnr_db=5.0)
    near = output(sqnr_db=None, max_absolute=allowed, envelope=((peak, allowed),), reference=constant)
    far = output(sqnr_db=None, max_absolute=allowed + 0.01, envelope=((peak, allowed + 0.01),), reference=constant)
    assert judged(near, gate) == set()
    assert judged(far, gate) == {"error"}


def test_every_sample_has_limits_of_its_own() -> None:
    gate = Tolerance(sqnr_db=15.0, low_sqnr_db=10.0, worst_sqnr_db=5.0)
    assert judged(output(sqnr_db=34.0, low_sqnr_db=-3.0, worst_sqnr_db=-5.0), gate) == {"low_sqnr_db", "worst_sqnr_db"}
    assert judged(output(sqnr_db=34.0, low_sqnr_db=12.0, worst_sqnr_db=6.0), gate) == set()


def test_top_1_agreement_is_asked_of_scores_alone_unless_it_was_asked_for() -> None:
    usual, asked = Tolerance(scores_top1_agreement=0.95), Tolerance(top1_agreement=0.95)
    scores, embedding = (output(top1_agreement=0.9, reference=known(scores=flag)) for flag in (True, False))
    assert judged(scores, usual) == judged(scores, asked) == judged(embedding, asked) == {"top1_agreement"}
    assert judged(embedding, usual) == set()


def test_rounded_numbers_are_judged_as_numbers_where_steps_lose_precision() -> None:
    boxes = output(agreement=0.2, top1_agreement=None, max_absolute=1.0, envelope=((300.0, 1.0),), sqnr_db=45.0)
    boxes = dataclasses.replace(boxes, reference=known(quantity=True, peak=300.0))
    assert judged(boxes, Tolerance(sqnr_db=15.0, agreement=0.97)) == set()
    assert judged(boxes, Tolerance(sqnr_db=50.0, agreement=0.97)) == {"sqnr_db"}
    assert judged(boxes, Tolerance(sqnr_db=15.0)) == {"agreement"}


def test_errors_of_values_grow_with_the_output_where_the_limit_was_not_given() -> None:
    large = output(max_absolute=0.0158, envelope=((10.1, 0.0158),), sqnr_db=128.7, reference=known(peak=1e4))
    usual = Tolerance(absolute=1e-4, relative=1e-3, sqnr_db=40.0, scales=True)
    assert judged(large, usual) == set()
    assert judged(large, dataclasses.replace(usual, scales=False)) == {"error"}


def test_a_gate_for_loaders_names_the_limits_of_each_output() -> None:
    gate = Gate(default=Tolerance(sqnr_db=15.0, scores_top1_agreement=0.95))
    references = {"label": known(), "fixed": known(signal=None), "scores": known(scores=True)}
    found = resolve_gate(gate, references)
    assert found.default == Tolerance(sqnr_db=15.0)
    assert found.of("label") == found.default
    assert found.of("scores").top1_agreement == 0.95
    assert found.of("fixed").sqnr_db is None
    assert found.of("fixed").absolute == pytest.approx(0.5335, abs=1e-4)


def test_a_ratio_that_was_asked_for_is_not_waived_for_rounding() -> None:
    found = Comparison(samples=1, outputs=(output(max_absolute=1e-7, sqnr_db=130.0),))
    asked = Tolerance(sqnr_db=400.0, waives_rounding=False)
    assert [failure.figure for failure in check_gate(found, Gate(default=asked))] == ["sqnr_db"]
    assert check_gate(found, Gate(default=dataclasses.replace(asked, waives_rounding=True))) == ()


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
        "output 'boxes': error 0.5 where the reference is 2 (max 0.0021: 0.0001 + 0.001 of the reference)",
        "output 'boxes': SQNR 12.25 dB (min 40)",
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


MAGNITUDES = st.floats(0, 1e6)
SHARES = st.none() | st.floats(0, 1)
FIGURES: dict[str, st.SearchStrategy[Any]] = {
    "name": st.sampled_from(["boxes", "scores"]),
    "equal": st.just(False),
    "max_absolute": MAGNITUDES,
    "mean_absolute": MAGNITUDES,
    "max_relative": MAGNITUDES,
    "cosine": SHARES,
    "sqnr_db": st.none() | st.floats(-50, 200),
    "top1_agreement": SHARES,
    "agreement": SHARES,
    "mismatch": st.none() | st.just("is empty instead of a tensor"),
    "envelope": st.lists(st.tuples(MAGNITUDES, MAGNITUDES), max_size=3).map(tuple),
}
OUTPUTS = st.builds(OutputComparison, **FIGURES)
TOLERANCES = st.builds(
    Tolerance,
    absolute=st.none() | MAGNITUDES,
    relative=st.none() | st.floats(0, 10),
    sqnr_db=st.none() | st.floats(-50, 200),
    cosine=SHARES,
    top1_agreement=SHARES,
    agreement=st.floats(0, 1),
    judged=st.booleans(),
)
UPPER, LOWER = ("absolute", "relative"), ("sqnr_db", "cosine", "top1_agreement", "agreement")


def judged(output: OutputComparison, tolerance: Tolerance) -> set[str]:
    found = check_gate(Comparison(outputs=(output,), samples=1), Gate(default=tolerance))
    return {failure.figure for failure in found}


@given(output=OUTPUTS, tolerance=TOLERANCES, data=st.data())
def test_a_looser_limit_never_fails_what_passed(
    output: OutputComparison, tolerance: Tolerance, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from([*UPPER, *LOWER, "judged"]))
    limit = getattr(tolerance, name)
    looser: Any
    if name == "judged":
        looser = False
    elif name == "agreement":
        looser = data.draw(st.floats(0, limit))
    elif limit is None or data.draw(st.booleans()):
        looser = None
    else:
        step = data.draw(st.floats(0, 100))
        looser = limit + step if name in UPPER else limit - step
    assert judged(output, dataclasses.replace(tolerance, **{name: looser})) <= judged(output, tolerance)


@given(outputs=st.lists(OUTPUTS, max_size=4), default=TOLERANCES, own=TOLERANCES)
def test_limits_of_one_output_concern_no_other(
    outputs: list[OutputComparison], default: Tolerance, own: Tolerance
) -> None:
    comparison = Comparison(outputs=tuple(outputs), samples=1)
    plain = [f for f in check_gate(comparison, Gate(default=default)) if f.output != "boxes"]
    special = [f for f in check_gate(comparison, Gate(default=default, outputs={"boxes": own})) if f.output != "boxes"]
    assert plain == special


def test_of_an_output_that_is_not_judged_nothing_is_asked() -> None:
    gate = Gate(default=TOLERANCE, outputs={"boxes": Tolerance(judged=False)})
    lost = output(name="boxes", mismatch="is float32[3, 4] instead of float32[5, 4]")
    assert check_gate(Comparison(outputs=(lost,), samples=1), gate) == ()


def test_without_limits_on_elements_the_noise_decides() -> None:
    noisy = output(max_absolute=3.0, envelope=((0.1, 3.0),), sqnr_db=25.0)
    assert judged(noisy, Tolerance(sqnr_db=20.0)) == set()
    assert judged(noisy, Tolerance(sqnr_db=30.0)) == {"sqnr_db"}


def test_integers_and_strings_must_be_equal_unless_a_share_is_given() -> None:
    indices = output(agreement=0.96, cosine=None, sqnr_db=None, top1_agreement=None, max_absolute=0.0, envelope=())
    assert judged(indices, TOLERANCE) == {"agreement"}
    assert judged(indices, Tolerance(agreement=0.95)) == set()
    assert judged(indices, Tolerance(agreement=0.97)) == {"agreement"}


def test_a_broken_gate_as_people_read_it(snapshot: SnapshotAssertion) -> None:
    """The worst output comes first, with the sample that is furthest off."""
    outputs = (
        output(name="good"),
        output(name="scores \x1b[31m", sqnr_db=12.25, top1_agreement=0.5, worst_sample="cat.png", worst_sqnr_db=3.125),
        output(name="boxes", sqnr_db=7.5, cosine=0.9, max_absolute=0.5, envelope=((2.0, 0.5),), worst_sample="dog"),
        output(name="ids", agreement=0.5, difference="1 of 2 values differ, the first at [0]: '7' instead of '2'"),
        output(name="text", mismatch="is str[3] instead of str[4]", worst_sample="a\nb"),
    )
    comparison = Comparison(outputs=outputs, samples=3)
    gate = Gate(default=TOLERANCE, outputs={"ids": Tolerance(agreement=0.95)})
    assert "\n".join(describe_failures(comparison, check_gate(comparison, gate))) == snapshot
