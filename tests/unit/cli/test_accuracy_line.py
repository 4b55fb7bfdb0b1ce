"""The line of a build's summary on accuracy claims what was compared, where, and against what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bundler.cli.accuracy import accuracy_lines
from bundler.model.runtime import Tolerance
from bundler.pipeline.results import AccuracyResult

INT8 = Tolerance(sqnr_db=15.0, low_sqnr_db=10.0, worst_sqnr_db=5.0, top1_agreement=0.95)
FLOAT = Tolerance(absolute=1e-4, relative=1e-3, sqnr_db=40.0, worst_sqnr_db=30.0)


def found(**figures: Any) -> str:
    known: dict[str, Any] = {
        "variant": "htp",
        "samples": 40,
        "outputs": 1,
        "unjudged": 0,
        "output": "scores",
        "equal": False,
        "max_absolute": 0.2,
        "sqnr_db": 22.84,
        "worst_sqnr_db": 8.04,
        "top1_agreement": 0.975,
        "agreement": None,
        "limit": INT8,
    }
    return "\n".join(accuracy_lines(AccuracyResult(**(known | figures))))


def test_a_ratio_of_rounding_errors_below_its_limit_says_why_it_passed() -> None:
    line = found(limit=replace(FLOAT, sqnr_db=140.0), max_absolute=2e-7, sqnr_db=131.0, worst_sqnr_db=120.0)
    assert "SQNR 131.0 dB (min 140, waived: rounding errors only), worst sample 120.0 dB (min 30)" in line


def test_a_share_below_its_limit_is_not_rounded_up_to_it() -> None:
    assert "top-1 94.99% (min 95%" in found(top1_agreement=0.94999)


def test_all_figures_stand_beside_their_limits() -> None:
    assert found() == (
        "htp: gate passed against the original model, 40 samples\n"
        "SQNR 22.8 dB (min 15), worst sample 8.0 dB (min 5), top-1 97.5% (min 95%), max error 0.2"
    )
    assert found(limit=FLOAT, max_absolute=2e-7, sqnr_db=131.0, worst_sqnr_db=120.0, top1_agreement=None) == (
        "htp: gate passed against the original model, 40 samples\n"
        "SQNR 131.0 dB (min 40), worst sample 120.0 dB (min 30), "
        "max error 2e-07 (limit 0.0001 + 0.001 of the reference)"
    )


def test_what_ran_elsewhere_or_could_not_be_judged_is_said() -> None:
    reported = found(variant="gpu", in_place_of="SomeProvider", outputs=3, unjudged=1, samples=1)
    assert reported.startswith(
        "gpu: gate passed against the original model on 2 of 3 outputs, 1 sample, run on the CPU in place of "
        "SomeProvider, worst output scores\n"
    )
    assert found(outputs=2, unjudged=2) == "htp: no output could be judged, 40 samples, worst output scores"


def test_figures_of_the_bundles_own_runtime_say_where_it_ran() -> None:
    reported = found(variant="webgpu", place="in Chromium 156.0 with a software adapter", samples=8)
    assert reported.startswith(
        "webgpu: gate passed against the original model, 8 samples, in Chromium 156.0 with a software adapter\n"
    )


def test_equal_answers_and_answers_that_are_held_to_nothing() -> None:
    passed = "htp: gate passed against the original model, 40 samples"
    assert found(equal=True, max_absolute=0.0) == f"{passed}\nbit-identical"
    assert found(limit=Tolerance(judged=False)) == "htp: not judged (set by the profile), 40 samples"


def test_a_name_from_a_model_cannot_write_on_the_terminal() -> None:
    assert "\x1b" not in found(output="\x1b[31m" + "x" * 500, outputs=2)
