"""A choice of precision that a lock records is repeated, unless nobody could have taken it here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bundler.model.attempts import Frontier, RecordedChoice
from bundler.model.errors import UsageError
from bundler.model.events import SILENT
from bundler.pipeline.precision import digest_question, settle_precision
from bundler.pipeline.prepare import Prepared
from bundler.pipeline.requests import BuildRequest
from bundler.planning.plan import make_plan
from bundler.planning.request import PlanRequest
from bundler.planning.settle import settle_profile
from bundler.profiles.resolve import resolve_target
from tests.support.facts import make_facts

WORKSPACE: Any = None
"""Nothing is run."""


def prepared(chosen: str, variant: str = "cpu") -> Prepared:
    """A locked build whose lock records a choice for the variant `cpu`."""
    profile, request = resolve_target("linux-x64", ("precision.method=auto",)), PlanRequest(methods={"cpu": "none"})
    settled = settle_profile(profile, make_facts(), request)
    found = Prepared(
        request=BuildRequest(model=Path("cnn.onnx"), target=profile.id, locked=True),
        bundle="cnn",
        title="cnn",
        facts=make_facts(),
        settled=settled,
        earlier=(),
        sources={},
        plan=make_plan(settled, request),
        plan_request=request,
    )
    frontier = Frontier(
        variant=variant, chosen=chosen, attempts=(), timing="measured", how="", held_out=8, calibration=0
    )
    record = RecordedChoice(question=digest_question(found, found.profile.variants[0]), answer=frontier)
    decisions = {f"{found.plan.model_name}-{profile.id}": {"cpu": record}}
    return replace(found, request=replace(found.request, decisions=decisions))


def test_a_recorded_choice_is_repeated() -> None:
    settled = settle_precision(prepared("none"), WORKSPACE, SILENT)
    assert settled.plan_request.methods == {"cpu": "none"}
    assert settled.decisions["cpu"].answer == settled.frontiers[0]


@pytest.mark.parametrize(("chosen", "variant"), [("rm -rf", "cpu"), ("none", "gpu")])
def test_a_choice_that_could_not_have_been_taken_counts_as_none(chosen: str, variant: str) -> None:
    with pytest.raises(UsageError, match="holds no decision on the precision of cpu"):
        settle_precision(prepared(chosen, variant), WORKSPACE, SILENT)
