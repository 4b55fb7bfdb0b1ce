"""How much of a graph an accelerator must take."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bundler.model.errors import StageError
from bundler.model.events import Event, Message, Reporter
from bundler.model.placement import Gain
from bundler.model.plan import BuildPlan
from bundler.model.results import StepOutcome
from bundler.pipeline.placement import check_placements, describe_shortfalls, find_placements
from tests.support.plans import plan_for

LEFT = {"name": "topk", "operator": "TopK", "reason": "operator not supported"}


def plan(*overrides: str) -> BuildPlan:
    return plan_for("snapdragon-8g3", *overrides)


def outcomes(step: str = "htp/compile_context", **facts: Any) -> dict[str, StepOutcome]:
    found = {"provider": "QNNExecutionProvider", "assigned": 3, "left": 2, "left_nodes": [LEFT], **facts}
    outcome = StepOutcome(
        step=step,
        stage="compile_context",
        key="",
        artifact=None,
        folder=Path(),
        entry=None,
        facts=found,
        notes=(),
        ingredients={},
        seconds=0.0,
        cached=False,
    )
    return {step: outcome}


def warnings_of(result: BuildPlan, found: dict[str, StepOutcome]) -> list[str]:
    heard: list[Event] = []
    check_placements(result, found, Reporter(heard.append, "cnn → phone"))
    return [event.note.text for event in heard if isinstance(event, Message)]


def test_too_few_nodes_end_the_build_and_say_which_stay_behind() -> None:
    with pytest.raises(StageError) as caught:
        warnings_of(plan(), outcomes())
    assert "3 of 5 nodes assigned to QNNExecutionProvider, and the profile requires 90%" in caught.value.message
    assert caught.value.details == ("TopK 'topk': operator not supported", "and 1 more")
    assert "variants.htp.shortfall=report" in (caught.value.hint or "")


def test_a_profile_may_accept_it_and_is_reported_loudly() -> None:
    (reported,) = warnings_of(plan("variants.htp.shortfall=report"), outcomes())
    assert reported.startswith(
        "variant htp: 3 of 5 nodes assigned to QNNExecutionProvider, and the profile requires 90%"
    )
    assert reported.endswith("; the rest runs on the CPU")


def test_enough_is_enough() -> None:
    assert warnings_of(plan(), outcomes(assigned=9, left=1)) == []
    assert warnings_of(plan("variants.htp.least_share=0.5"), outcomes()) == []


def test_an_estimate_ends_no_build() -> None:
    result = plan_for("ios-arm64")
    strict = tuple(replace(variant, least_share=1.0, tolerates_shortfall=False) for variant in result.variants)
    (reported,) = warnings_of(replace(result, variants=strict), outcomes("coreml/check_placement", estimated=True))
    assert "3 of 5 nodes likely to be assigned" in reported


def test_of_a_graph_without_nodes_all_was_taken() -> None:
    ((_, placement),) = find_placements(plan(), outcomes(assigned=0, left=0))
    assert placement.share == 1.0


def test_a_shortfall_is_a_statement_of_the_bundle() -> None:
    (reported,) = describe_shortfalls(plan("variants.htp.shortfall=report"), outcomes(assigned=0, left=9))
    asked = "and the profile requires 90%"
    assert reported == f"variant htp: 0 of 9 nodes assigned to QNNExecutionProvider, {asked}; the rest runs on the CPU"
    assert describe_shortfalls(plan(), outcomes(assigned=9, left=1)) == ()


def test_a_gain_is_reported_with_an_option_or_with_the_line_of_a_project_file() -> None:
    gain = Gain(assigned=3, total=5, options=("--shape", "x=1,3,64,64"))
    reported = "with fixed sizes 3 of 5 nodes are likely to be assigned to it, for example with "
    assert gain.describe().startswith(f"{reported}--shape x=1,3,64,64 (")
    line = 'shapes = { "x" = [1, 3, 64, 64] } in bundler.toml, in the table of the model ('
    assert gain.describe("bundler.toml").startswith(reported + line)
