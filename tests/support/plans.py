"""Plans of models that are facts alone, for tests of pure code."""

from __future__ import annotations

from typing import Any

from bundler.model.facts import ModelFacts
from bundler.model.plan import BuildPlan
from bundler.planning.plan import make_plan
from bundler.planning.request import PlanRequest
from bundler.planning.settle import SettledProfile, settle_profile
from bundler.profiles.resolve import resolve_target
from tests.support.facts import make_facts


def settle(target: str, *overrides: str, facts: ModelFacts | None = None, **request: Any) -> SettledProfile:
    """What a build uses of a target; `request` are fields of a `PlanRequest`."""
    return settle_profile(resolve_target(target, overrides), facts or make_facts(), PlanRequest(**request))


def plan_for(target: str, *overrides: str, facts: ModelFacts | None = None, **request: Any) -> BuildPlan:
    """The plan of a build for a target; `request` are fields of a `PlanRequest`."""
    return make_plan(settle(target, *overrides, facts=facts, **request), PlanRequest(**request))
