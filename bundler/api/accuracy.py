"""How close each variant came to the original model: the last comparison that a gate judged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from bundler.api.requests import AccuracyResult
from bundler.model.codec import decode
from bundler.model.gates import resolve_tolerance
from bundler.model.plan import BuildPlan, Step, VariantPlan
from bundler.model.reference import ReferenceFigures
from bundler.model.results import Comparison, OutputComparison, StepOutcome
from bundler.model.runtime import Gate, Tolerance


def find_accuracies(plan: BuildPlan, outcomes: Mapping[str, StepOutcome]) -> tuple[AccuracyResult, ...]:
    """One for each variant, in the plan's order; none for a variant whose model nothing changed."""
    return tuple(_find_accuracies(plan, outcomes))


def _find_accuracies(plan: BuildPlan, outcomes: Mapping[str, StepOutcome]) -> Iterator[AccuracyResult]:
    steps = {step.id: step for step in plan.steps}
    for variant in plan.variants:
        judged = next((name for name in reversed(variant.comparisons) if name in plan.gates), None)
        if judged is not None:
            comparison = decode(Comparison, outcomes[judged].facts)
            in_place_of = "" if _ran_on(steps[judged], variant) else variant.providers[0].name
            yield replace(_describe(variant.name, comparison, plan.gates[judged]), in_place_of=in_place_of)


def _ran_on(step: Step, variant: VariantPlan) -> bool:
    """Whether the variant's own first provider was what ran the model."""
    first = next(iter(step.options.get("providers", ())), None)
    return first is not None and first[0] == variant.providers[0].name


def _describe(variant: str, comparison: Comparison, gate: Gate) -> AccuracyResult:
    limits = {output.name: resolve_tolerance(gate.of(output.name), _known(output)) for output in comparison.outputs}
    output = min(comparison.outputs, key=lambda one: _margin(one, limits[one.name]))
    limit = limits[output.name]
    return AccuracyResult(
        variant=variant,
        samples=comparison.samples,
        outputs=len(comparison.outputs),
        unjudged=sum(bool(_known(one).unjudged) or not limits[one.name].judged for one in comparison.outputs),
        output=output.name,
        equal=comparison.equal,
        max_absolute=output.max_absolute,
        sqnr_db=output.sqnr_db,
        worst_sqnr_db=output.worst_sqnr_db,
        top1_agreement=None if limit.top1_agreement is None else output.top1_agreement,
        agreement=output.agreement,
        limit=limit,
    )


def _known(output: OutputComparison) -> ReferenceFigures:
    return output.reference or ReferenceFigures(name=output.name)


def _margin(output: OutputComparison, limit: Tolerance) -> tuple[bool, float, float]:
    """How far an output is from its limits: the least first. Where all are equal any will do."""
    decibels = math.inf if output.sqnr_db is None else output.sqnr_db - (limit.sqnr_db or 0.0)
    return output.equal, -1.0 if output.agreement not in (None, 1.0) else decibels, -output.max_absolute
