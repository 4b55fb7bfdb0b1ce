"""What a broken gate names: every limit that was missed, as it can be typed."""

from __future__ import annotations

import shlex

import pytest

from bundler.model.gates import GateFailure
from bundler.model.plan import Step
from bundler.pipeline.judging import Verdict

STEP = Step(id="cpu/optimize/compare", stage="compare", inputs={"model": "cpu/optimize"})


def failure(figure: str, output: str = "scores") -> GateFailure:
    return GateFailure(output=output, figure=figure, limit=1.0, worst=2.0, text="")


def settings(*failures: GateFailure, several: bool = True) -> list[str]:
    return shlex.split(f"--set {Verdict(step=STEP, lines=(), failures=failures, several=several).setting}")


def test_every_figure_that_was_missed_is_named_once() -> None:
    missed = [failure(figure) for figure in ("low_sqnr_db", "worst_sqnr_db", "worst_sqnr_db")]
    assert settings(*missed) == ["--set", "accuracy.low_sqnr_db=…", "--set", "accuracy.worst_sqnr_db=…"]


def test_the_error_of_one_output_of_several_leaves_the_limits_of_the_others() -> None:
    assert settings(failure("error")) == ["--set", "accuracy.outputs.scores.absolute=…"]
    assert settings(failure("error"), several=False) == ["--set", "accuracy.absolute=…"]


@pytest.mark.parametrize("name", ["Identity:0", "it's", "a.b"])
def test_a_name_is_quoted_for_the_shell_and_for_the_option(name: str) -> None:
    assert settings(failure("error", name)) == ["--set", f'accuracy.outputs."{name}".absolute=…']


def test_a_mismatch_is_judged_otherwise() -> None:
    assert "judged=false" in settings(failure("mismatch"), failure("error"))[1]


@pytest.mark.parametrize(("worst", "noise"), [(-2.9, True), (0.3, True), (16.1, False), (None, False)])
def test_errors_as_large_as_the_values_are_no_rounding(worst: float | None, *, noise: bool) -> None:
    """A transposed convolution that an NPU's compiler computes wrong was advised a wider gate."""
    missed = GateFailure(output="y", figure="sqnr_db", limit=30.0, worst=worst, text="")
    assert Verdict(step=STEP, lines=(), failures=(missed, failure("error"))).is_noise == noise
