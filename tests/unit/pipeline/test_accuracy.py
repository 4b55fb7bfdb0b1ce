"""What a build says of its accuracy is of outputs that could have failed, and of the gate that ships."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from bundler.cli.accuracy import accuracy_lines
from bundler.model.codec import encode
from bundler.model.plan import ComponentPlan, Step, VariantPlan
from bundler.model.reference import ReferenceFigures
from bundler.model.results import Comparison, OutputComparison, StepOutcome
from bundler.model.runtime import Gate, ProviderEntry
from bundler.model.state import StateLink
from bundler.pipeline.accuracy import VerifiedRun, find_accuracies
from bundler.pipeline.results import AccuracyResult
from bundler.planning.gate import FLOAT, LOSSY
from bundler.stages.record_golden.spec import Facts

JUDGED = OutputComparison(
    name="good",
    equal=False,
    max_absolute=1e-6,
    mean_absolute=1e-7,
    max_relative=1e-6,
    cosine=1.0,
    sqnr_db=120.0,
    top1_agreement=1.0,
    reference=ReferenceFigures(name="good", elements=4, signal=2.0, peak=1.0),
)
RANDOM = dataclasses.replace(
    JUDGED,
    name="random",
    sqnr_db=0.0,
    reference=ReferenceFigures(name="random", elements=4, signal=2.0, unjudged="it differs from run to run"),
)

GOLDEN = Facts(
    samples=8,
    synthetic=False,
    unstable_outputs=(),
    non_finite_outputs=(),
    dimensions={},
    tried_dimensions=(),
    references=(JUDGED.reference or ReferenceFigures(name="good"),),
    weaknesses=(),
)


def outcome(step: str, facts: Any) -> StepOutcome:
    return StepOutcome(
        step=step,
        stage="compare",
        key="",
        artifact=None,
        folder=Path("/nowhere"),
        entry=None,
        facts=facts,
        notes=(),
        ingredients={},
        seconds=0.0,
        cached=False,
    )


def find(
    *outputs: OutputComparison,
    gate: Gate,
    run: bool = False,
    state: tuple[StateLink, ...] = (),
    provider: str = "Cpu",
) -> AccuracyResult:
    options = {"providers": [[provider, {}]]}
    step = Step(
        id="gpu/optimize/compare", stage="compare", inputs={}, options=options, environment="onnxruntime==1.31.1"
    )
    variant = VariantPlan(
        name="gpu",
        model="gpu/optimize",
        providers=(ProviderEntry(name="Gpu", options={}),),
        session={},
        session_config={},
        comparisons=(step.id,),
        gate=gate,
        rounding="computes in half precision",
    )
    plan = ComponentPlan(
        name="model",
        model_name="m",
        steps=(step,),
        golden="golden",
        variants=(variant,),
        decisions=(),
        gates={step.id: Gate(default=FLOAT)},
        state=state,
    )
    comparison = Comparison(samples=8, outputs=outputs)
    outcomes = {
        step.id: outcome(step.id, encode(comparison)),
        "golden": outcome("golden", encode(GOLDEN)),
    }
    runs = [VerifiedRun(variant="gpu", place="in a browser", comparison=comparison)] if run else []
    (found,) = find_accuracies(plan, outcomes, runs)
    return found


@pytest.mark.parametrize("outputs", [(RANDOM, JUDGED), (JUDGED, RANDOM)])
def test_an_output_that_cannot_be_judged_is_not_the_one_that_is_shown(outputs: tuple[OutputComparison, ...]) -> None:
    found = find(*outputs, gate=Gate(default=FLOAT))
    assert (found.output, found.unjudged, found.outputs) == ("good", 1, 2)


def test_answers_are_equal_where_those_are_that_can_be_judged() -> None:
    equal = dataclasses.replace(JUDGED, equal=True, max_absolute=0.0, sqnr_db=None)
    assert find(RANDOM, equal, gate=Gate(default=FLOAT)).equal


def test_nothing_is_claimed_where_no_output_can_be_judged() -> None:
    (line,) = accuracy_lines(find(dataclasses.replace(RANDOM, equal=True), gate=Gate(default=FLOAT)))
    assert ": no output could be judged, " in line


def test_what_the_device_is_held_to_is_said_where_another_ran_in_its_place() -> None:
    *_, line = accuracy_lines(find(JUDGED, gate=Gate(default=LOSSY["half"])))
    limits = "30 dB (25 in nine of ten samples, 15 in each)"
    assert line == f"limits on the device, which computes in half precision: SQNR {limits}"
    assert "on the device" not in "".join(accuracy_lines(find(JUDGED, gate=Gate(default=FLOAT))))


def test_a_run_of_the_bundle_itself_is_shown_with_the_gate_that_ships() -> None:
    found = find(JUDGED, gate=Gate(default=LOSSY["half"]), run=True)
    assert found.limit.sqnr_db == 30.0
    assert found.place == "in a browser"
    assert "on the device" not in "".join(accuracy_lines(found))


def test_figures_of_a_bundle_that_was_not_run_are_of_its_build() -> None:
    gate = Gate(default=FLOAT)
    assert find(JUDGED, gate=gate, provider="Gpu").place == "when it was built, by onnxruntime 1.31.1"
    assert find(JUDGED, gate=gate, provider="Gpu", run=True).place == ""


def test_a_run_of_a_stream_has_steps() -> None:
    state = (StateLink(input="h", output="hn"),)
    stream, _ = accuracy_lines(find(JUDGED, gate=Gate(default=FLOAT), run=True, state=state))
    assert stream.endswith(", 8 steps of a stream, in a browser")
    calls, _ = accuracy_lines(find(JUDGED, gate=Gate(default=FLOAT), run=True))
    assert calls.endswith(", 8 samples, in a browser")
