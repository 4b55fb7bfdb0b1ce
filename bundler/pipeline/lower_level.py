"""Optimise a quantised model less where the runtime's fusions change its outputs too much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from bundler.model.events import Reporter
from bundler.model.plan import ComponentPlan, Decision, Step
from bundler.model.results import StepOutcome
from bundler.pipeline.error_sources import lossy_step
from bundler.pipeline.judging import Verdict, judge_plan
from bundler.pipeline.prepare import Prepared
from bundler.pipeline.workspace import Workspace
from bundler.planning.plan import make_plan
from bundler.stages.optimize.spec import SPEC as OPTIMIZE

_LOWER: Final = "basic"
_REASON: Final = "at level extended, the runtime fuses operators and rounds in other places, and the gate fails"


def lower_level(
    prepared: Prepared, outcomes: dict[str, StepOutcome], workspace: Workspace, reporter: Reporter
) -> tuple[Prepared, dict[str, StepOutcome]]:
    """The component at level `basic`, with a warning, where only that meets the gate; else what was given.

    Only for a model that is quantised already, at a level that nobody set: fused, it rounds its intermediate values in
    other places. Only the plan changes: the profile still leaves the level open.
    """
    if not prepared.facts.quantized or prepared.profile.optimization.level != "auto":
        return prepared, outcomes
    broken = judge_plan(prepared.plan, prepared.profile, outcomes)
    if not broken or not all(_is_fused(prepared, verdict) for verdict in broken):
        return prepared, outcomes
    lowered = replace(prepared, plan=_plan_lower(prepared))
    tried = workspace.executor.execute(lowered.plan.steps, lowered.sources, reporter)
    if judge_plan(lowered.plan, lowered.profile, tried):
        return prepared, outcomes
    reporter.warn(f"optimised at level {_LOWER}: {_REASON} ({broken[0].lines[0]})")
    return lowered, tried


def _is_fused(prepared: Prepared, verdict: Verdict) -> bool:
    """Whether the judged model was optimised at a higher level, and no step before it reduces precision."""
    steps = {step.id: step for step in prepared.plan.steps}
    step: Step | None = steps.get(verdict.judged)
    while step is not None and step.stage != OPTIMIZE.name:
        step = steps.get(step.inputs.get("model", ""))
    return step is not None and step.options.get("level") == "extended" and lossy_step(prepared, verdict) is None


def _plan_lower(prepared: Prepared) -> ComponentPlan:
    """The plan at the lower level; a decision that changes says why, because no profile set the level."""
    plan = make_plan(prepared.settled.at_level(_LOWER), prepared.plan_request)
    known = {decision.subject: decision for decision in prepared.plan.decisions}
    return replace(plan, decisions=tuple(_explain(decision, known) for decision in plan.decisions))


def _explain(decision: Decision, known: Mapping[str, Decision]) -> Decision:
    if not decision.subject.startswith("level"):
        return decision
    before = known.get(decision.subject)
    return before if before and before.choice == decision.choice else replace(decision, reason=_REASON)
