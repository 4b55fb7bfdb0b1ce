"""How close each variant came to the original model: the last comparison that a gate judged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from bundler.model.gates import resolve_tolerance
from bundler.model.plan import ComponentPlan, Step, VariantPlan
from bundler.model.reference import ReferenceFigures
from bundler.model.results import Comparison, OutputComparison, StepOutcome
from bundler.model.runtime import Gate, Tolerance
from bundler.pipeline.assemble import read_references
from bundler.pipeline.results import AccuracyResult, VerifiedRun


def find_accuracies(
    plan: ComponentPlan, outcomes: Mapping[str, StepOutcome], runs: Iterable[VerifiedRun] = ()
) -> tuple[AccuracyResult, ...]:
    """One for each variant, in the plan's order; none for a variant whose model nothing changed.

    The figures of the last stage are over the most samples. Where the CPU ran that one in place of the variant's own
    provider, those of `runs` are nearer to a device's outputs. Where the bundle was not run, they say so.
    """
    own = {run.variant: run for run in runs}
    return tuple(_find_accuracies(plan, outcomes, own))


def _find_accuracies(
    plan: ComponentPlan, outcomes: Mapping[str, StepOutcome], runs: Mapping[str, VerifiedRun]
) -> Iterator[AccuracyResult]:
    steps = {step.id: step for step in plan.steps}
    references = read_references(outcomes[plan.golden])
    for variant in plan.variants:
        judged = next((name for name in reversed(variant.comparisons) if name in plan.gates), None)
        if judged is None:
            continue
        comparison, gate = outcomes[judged].read_facts(Comparison), plan.gates[judged]
        run = runs.get(variant.name)
        device = variant.gate or gate
        if _ran_on(steps[judged], variant):
            here = "" if run else f"when it was built, by {steps[judged].environment.replace('==', ' ')}"
            yield replace(_describe(variant, comparison, gate), place=here)
        elif run is not None:
            found = _describe(variant, _refer(run.comparison, references), device)
            yield replace(found, place=run.place, stream=bool(plan.state))
        else:
            yield replace(_describe(variant, comparison, gate), in_place_of=variant.providers[0].name)


def _refer(comparison: Comparison, references: Mapping[str, ReferenceFigures]) -> Comparison:
    """The same, each output with the figures of its reference, which a loader does not repeat."""
    outputs = (replace(output, reference=references.get(output.name)) for output in comparison.outputs)
    return replace(comparison, outputs=tuple(outputs))


def _ran_on(step: Step, variant: VariantPlan) -> bool:
    """Whether the variant's own first provider was what ran the model."""
    first = next(iter(step.options.get("providers", ())), None)
    return first is not None and first[0] == variant.providers[0].name


def _describe(variant: VariantPlan, comparison: Comparison, gate: Gate) -> AccuracyResult:
    limits = {output.name: resolve_tolerance(gate.of(output.name), _known(output)) for output in comparison.outputs}
    judged = [one for one in comparison.outputs if is_judged(one, gate)]
    output = min(judged or comparison.outputs, key=lambda one: _margin(one, limits[one.name]))
    limit = limits[output.name]
    device = resolve_tolerance((variant.gate or gate).of(output.name), _known(output))
    return AccuracyResult(
        variant=variant.name,
        samples=comparison.samples,
        outputs=len(comparison.outputs),
        unjudged=len(comparison.outputs) - len(judged),
        output=output.name,
        equal=all(one.equal for one in judged or comparison.outputs),
        max_absolute=output.max_absolute,
        sqnr_db=output.sqnr_db,
        worst_sqnr_db=output.worst_sqnr_db,
        top1_agreement=None if limit.top1_agreement is None else output.top1_agreement,
        agreement=output.agreement,
        limit=limit,
        typical_sqnr_db=output.typical_sqnr_db,
        device_limit=None if device == limit else device,
        rounding="" if device == limit else variant.rounding,
        stream=any(one.step_sqnr_db for one in comparison.outputs),
        drift=_find_drift(judged),
    )


DRIFT_DB = 6.0
"""Twice the error: less is how the steps of any stream differ."""

LEAST_DRIFTING = 8
"""Steps; of fewer no quarter says much."""


def _find_drift(outputs: Sequence[OutputComparison]) -> tuple[float, float] | None:
    """The lowest ratio in dB in the first and the last quarter of a stream's steps, of the output that drifts most."""
    found = []
    for output in outputs:
        quarter = len(output.step_sqnr_db) // 4
        ends = [
            [ratio for ratio in steps if ratio is not None]
            for steps in (output.step_sqnr_db[:quarter], output.step_sqnr_db[-quarter:] if quarter else ())
        ]
        if len(output.step_sqnr_db) >= LEAST_DRIFTING and all(ends):
            found.append((min(ends[0]), min(ends[1])))
    most = max(found, key=lambda pair: pair[0] - pair[1], default=(0.0, 0.0))
    return most if most[0] - most[1] >= DRIFT_DB else None


def is_judged(output: OutputComparison, gate: Gate) -> bool:
    """Whether the comparison of this output could have failed."""
    return gate.of(output.name).judged and not _known(output).unjudged


def _known(output: OutputComparison) -> ReferenceFigures:
    return output.reference or ReferenceFigures(name=output.name)


def _margin(output: OutputComparison, limit: Tolerance) -> tuple[bool, float, float]:
    """How far an output is from its limits: the least first. Where all are equal any will do."""
    decibels = math.inf if output.sqnr_db is None else output.sqnr_db - (limit.sqnr_db or 0.0)
    return output.equal, -1.0 if output.agreement not in (None, 1.0) else decibels, -output.max_absolute
