"""Optimise a model less where the runtime's fusions change its outputs too much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

_COST: Final = (
    "; a quantised model then computes in floating point between its rounded values and may be several times slower: "
    "with real samples (--samples) or a wider gate it may keep its int8 operators"
)


def lower_level(
    prepared: Prepared, outcomes: dict[str, StepOutcome], workspace: Workspace, reporter: Reporter
) -> tuple[Prepared, dict[str, StepOutcome]]:
    """The component at level `basic`, with a warning, where only that meets the gate; else what was given.

    Only at a level that nobody set. Only the plan changes: the profile still leaves the level open.
    """
    broken = judge_plan(prepared.plan, prepared.profile, outcomes)
    if not broken or not tries_lower(prepared, broken):
        return prepared, outcomes
    lowered = replace(prepared, plan=_plan_lower(prepared))
    tried = workspace.executor.execute(lowered.plan.steps, lowered.sources, reporter)
    if judge_plan(lowered.plan, lowered.profile, tried):
        return prepared, outcomes
    cost = _COST if prepared.facts.quantized else ""
    reporter.warn(f"optimised at level {_LOWER}: {_REASON} ({broken[0].lines[0]}){cost}")
    return lowered, tried


def tries_lower(prepared: Prepared, broken: Sequence[Verdict]) -> bool:
    """Whether a lower level is tried for models that break the gate: nobody set the level, and the first is fused.

    Fused, a model rounds its intermediate values in other places: one that is quantised, or selects among values that
    lie close together, may answer otherwise.
    """
    return prepared.profile.optimization.level == "auto" and is_fused(prepared, broken[0])


def is_fused(prepared: Prepared, verdict: Verdict) -> bool:
    """Whether the judged model was optimised at a higher level, and nothing else explains what it lost: no step before
    it reduces precision, and it was not compiled (what is compiled met the gate before, whatever its level).
    """
    if verdict.judged in {variant.compiled for variant in prepared.plan.variants}:
        return False
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
