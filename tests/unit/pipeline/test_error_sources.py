"""The error sources of a broken gate, and that nothing hides the gate itself."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from bundler.model.errors import StageError
from bundler.model.events import SILENT
from bundler.model.plan import Step
from bundler.pipeline.error_sources import (
    ErrorSources,
    describe_error_sources,
    find_error_sources,
    hint_for_loss,
    lossy_step,
)
from bundler.pipeline.judging import Verdict
from bundler.stages.attribute_error.spec import LossyTensor

LOSSY = Step(id="cpu/quantize_static", stage="quantize_static", inputs={"model": "simplify"})
OPTIMISED = Step(id="cpu/optimize", stage="optimize", inputs={"model": LOSSY.id})
COMPARE = Step(id="cpu/optimize/compare", stage="compare", inputs={"model": OPTIMISED.id, "golden": "golden"})
VERDICT = Verdict(step=COMPARE, lines=("output 'y': SQNR 3 dB (min 15)",))


def prepared(*steps: Step, excluded: tuple[str, ...] = ()) -> Any:
    profile = SimpleNamespace(precision=SimpleNamespace(exclude_nodes=excluded))
    plan = SimpleNamespace(steps=steps)
    return SimpleNamespace(title="model → linux-x64", profile=profile, plan=plan, sources={"simplify": 1, "golden": 2})


def tensor(node: str, **more: Any) -> LossyTensor:
    plain = LossyTensor(tensor="t", node=node, operator="Conv", kind="activation", sqnr_db=3.25, remedy=(node,))
    return replace(plain, **more)


def test_the_step_that_gives_precision_away_is_found_behind_others() -> None:
    assert lossy_step(prepared(LOSSY, OPTIMISED, COMPARE), VERDICT) is LOSSY
    assert lossy_step(prepared(OPTIMISED, COMPARE), VERDICT) is None


def test_error_sources_as_text(snapshot: SnapshotAssertion) -> None:
    tensors = [
        tensor("a 'quoted'\x1b[31m\nnode", kind="weight", remedy=("a 'quoted'\x1b[31m\nnode",)),
        tensor("", sqnr_db=None, remedy=()),
        *(tensor(f"it's {index}") for index in range(9)),
    ]
    sources = describe_error_sources(tensors)
    hint = hint_for_loss(prepared(excluded=("already",)), LOSSY, sources, "accuracy.sqnr_db=…")
    assert "\n".join((*sources.lines, hint)) == snapshot


def test_without_error_sources_the_hint_names_other_ways() -> None:
    assert describe_error_sources([]) == ErrorSources()
    hint = hint_for_loss(prepared(), LOSSY, ErrorSources(), "accuracy.sqnr_db=…")
    assert "exclude_nodes" not in hint
    assert "precision.method" in hint


def test_a_search_that_fails_does_not_hide_the_gate() -> None:
    class Executor:
        def execute(self, *_: object) -> None:
            raise StageError("there is no memory left")

    workspace: Any = SimpleNamespace(executor=Executor())
    given = prepared(LOSSY, OPTIMISED, COMPARE)
    given.sources[LOSSY.id] = 3
    sources = find_error_sources(given, {}, VERDICT, LOSSY, workspace=workspace, reporter=SILENT)
    assert sources.lines == ("the error sources were not found: there is no memory left",)
    assert sources.remedy == ()


@pytest.mark.parametrize("stage", ["quantize_dynamic", "quantize_static", "quantize_weights", "convert_float"])
def test_methods_that_can_leave_nodes_out_say_so(stage: str) -> None:
    step = Step(id=stage, stage=stage, inputs={})
    hint = hint_for_loss(prepared(), step, ErrorSources(remedy=("conv 1",)), "accuracy.sqnr_db=…")
    assert """--set 'precision.exclude_nodes=["conv 1"]'""" in hint


def test_a_node_that_is_excluded_already_is_not_named_again() -> None:
    sources = ErrorSources(remedy=("one", "two", "three", "four"))
    hint = hint_for_loss(prepared(excluded=("one", "two")), LOSSY, sources, "accuracy.sqnr_db=…")
    assert """'precision.exclude_nodes=["one", "two", "three", "four"]'""" in hint
    known = hint_for_loss(prepared(excluded=("one", "two")), LOSSY, ErrorSources(remedy=("one",)), "accuracy.sqnr_db=…")
    assert "exclude_nodes" not in known
