"""What a build says at its end: all that was heard on the way, and why nothing was timed."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bundler.emitters.registry import find_emitter
from bundler.model.plan import Decision
from bundler.model.proof import VariantProof
from bundler.model.results import StepOutcome
from bundler.model.stage import Note
from bundler.pipeline.bench import _nothing_timed
from bundler.pipeline.built import BuiltPart
from bundler.pipeline.finish import explain_unmeasured, list_notes
from bundler.pipeline.prepare import Prepared
from bundler.pipeline.requests import BuildRequest
from bundler.pipeline.verify import find_left_out
from bundler.planning.plan import make_plan
from bundler.planning.request import PlanRequest
from bundler.planning.settle import settle_profile
from bundler.profiles.resolve import resolve_target
from bundler.reporting.manifest import make_manifest, write_manifest
from tests.support.facts import make_facts
from tests.unit.reporting.builds import make_request

STAND_IN = VariantProof(variant="cpu", level="stand-in", passed=True, comparison=None, reason="", figures={})


def outcome(step: str, *notes: Note, **facts: Any) -> StepOutcome:
    return StepOutcome(
        step=step,
        stage=step.rpartition("/")[2],
        key="",
        artifact=None,
        folder=None,
        entry=None,
        facts=facts,
        notes=notes,
        ingredients={},
        seconds=0.0,
        cached=False,
    )


def prepared(*earlier: StepOutcome) -> Prepared:
    profile, request = resolve_target("snapdragon-8g3", ("variants.htp.shortfall=report",)), PlanRequest()
    left_out = (Decision(subject="variant gpu", choice="left out", reason="no runtime has it"),)
    settled = replace(settle_profile(profile, make_facts(), request), left_out=left_out)
    return Prepared(
        request=BuildRequest(model=Path("cnn.onnx"), target=profile.id),
        bundle="cnn",
        title="cnn",
        facts=make_facts(),
        settled=settled,
        earlier=earlier,
        sources={},
        plan=make_plan(settled, request),
        plan_request=request,
    )


def test_notes_are_all_that_was_heard_and_each_once() -> None:
    random = Note(text="the model draws random numbers", level="warning")
    few = Note(text="the golden set holds 16 of 60 samples")
    placed = outcome("htp/compile_context", provider="QNNExecutionProvider", assigned=0, left=9)
    found = {"record_golden": outcome("record_golden", few, few), "htp/compile_context": placed}
    part = BuiltPart(prepared=prepared(outcome("inspect", random)), outcomes=found)
    notes = list_notes((part,), ("set a variable",))
    assert [notes.count(text) for text in (random.text, few.text, "set a variable")] == [1, 1, 1]
    assert any("variant gpu" in text for text in notes)
    assert any(text.startswith("variant htp: 0 of 9 nodes assigned to QNNExecutionProvider") for text in notes)


def test_bundles_of_files_are_not_timed_whatever_ran_them() -> None:
    reason = "a bundle of files has no runtime to time"
    assert explain_unmeasured((STAND_IN,), find_emitter("neutral")) == reason
    assert explain_unmeasured((), find_emitter("neutral")) == reason
    assert explain_unmeasured((STAND_IN,), find_emitter("python")).startswith("it ran here as an emulation or stand-in")
    assert explain_unmeasured((), find_emitter("python")) == "the bundle was not run (--no-prove)"


@pytest.mark.parametrize(("ecosystem", "hint"), [("neutral", "in your application"), ("python", "`bundler verify`")])
def test_bench_says_why_nothing_was_timed(tmp_path: Path, ecosystem: str, hint: str) -> None:
    manifest = dataclasses.replace(make_manifest(tmp_path, make_request()), ecosystem=ecosystem)
    write_manifest(tmp_path, manifest)
    error = _nothing_timed([tmp_path])
    assert hint in (error.hint or "")
    assert bool(error.details) is (ecosystem == "neutral")


def test_verify_names_the_variants_that_a_bundle_has_not(tmp_path: Path) -> None:
    manifest = make_manifest(tmp_path, make_request())
    assert find_left_out(manifest) == ()
    gone = Decision(subject="variant tensorrt", choice="left out", reason="only your own build has it")
    (component,) = manifest.components
    lacking = dataclasses.replace(component, decisions=(*component.decisions, gone))
    found = dataclasses.replace(manifest, components=(lacking,))
    assert find_left_out(found) == ("variant tensorrt: only your own build has it",)
    other = dataclasses.replace(component, name="read")
    assert find_left_out(dataclasses.replace(manifest, components=(other, lacking))) == (
        "model: variant tensorrt: only your own build has it",
    )


def test_a_bundle_weighs_all_its_files_and_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"12345")
    manifest = make_manifest(tmp_path, make_request(name="\ud800"))
    assert write_manifest(tmp_path, manifest) == sum(path.stat().st_size for path in tmp_path.iterdir())
