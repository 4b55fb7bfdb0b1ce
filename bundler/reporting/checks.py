"""Makes a manifest's checks from the results of the `compare` stages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bundler.model.codec import decode
from bundler.model.manifest import CheckRecord, OutputCheck
from bundler.model.plan import ComponentPlan
from bundler.model.reference import ReferenceFigures
from bundler.model.results import Comparison, OutputComparison, StepOutcome
from bundler.reporting.figures import name_figure

_FIGURES = (
    "max_absolute",
    "mean_absolute",
    "max_relative",
    "cosine",
    "sqnr_db",
    "top1_agreement",
    "agreement",
    "low_sqnr_db",
    "worst_sqnr_db",
    "typical_sqnr_db",
)

MOST_STEPS: Final = 64
"""Figures of a stream's steps in a manifest, for each output; of longer streams the lowest of several steps counts."""


def make_checks(plan: ComponentPlan, outcomes: Sequence[StepOutcome]) -> tuple[CheckRecord, ...]:
    """One check for each comparison, in the order of the plan. One that several variants share has no variant."""
    found = {outcome.step: outcome for outcome in outcomes if outcome.stage == "compare"}
    return tuple(
        _make_check(step.inputs.get("model", step.id), step.variant, found[step.id])
        for step in plan.steps
        if step.id in found
    )


def read_comparison(facts: Mapping[str, Any]) -> Comparison:
    """The comparison in a `compare` step's facts. Raises `TypeError` or `KeyError` where there is none."""
    return decode(Comparison, facts.get("comparison", facts))


def check_output(output: OutputComparison) -> OutputCheck:
    """One output's figures; figures that are not finite go into the remark. A manifest names no samples."""
    figures = {name: _read_figure(getattr(output, name)) for name in _FIGURES}
    values: dict[str, Any] = {
        name: value if value is not None and math.isfinite(value) else None for name, value in figures.items()
    }
    known = output.reference or ReferenceFigures(name=output.name)
    steps = output.step_sqnr_db
    each = max(1, -(-len(steps) // MOST_STEPS))
    return OutputCheck(
        name=output.name,
        elements=known.elements,
        scores=known.scores,
        unjudged=known.unjudged,
        equal=output.equal,
        remark=_remark(output, figures),
        step_sqnr_db=tuple(find_least(steps[first : first + each]) for first in range(0, len(steps), each)),
        steps_each=each,
        **values,
    )


def find_least(ratios: Sequence[float | None]) -> float | None:
    """The lowest SQNR; steps without noise have none."""
    return min((ratio for ratio in ratios if ratio is not None and math.isfinite(ratio)), default=None)


def _make_check(after: str, variant: str | None, outcome: StepOutcome) -> CheckRecord:
    comparison = read_comparison(outcome.facts)
    return CheckRecord(
        step=outcome.step,
        after=after,
        variant=variant,
        samples=comparison.samples,
        equal=comparison.equal,
        outputs=tuple(check_output(output) for output in comparison.outputs),
    )


def _read_figure(value: float | str | None) -> float | None:
    """Workers send numbers that are not finite as strings, which `float` parses."""
    return None if value is None else float(value)


def _remark(output: OutputComparison, figures: Mapping[str, float | None]) -> str | None:
    if output.mismatch is not None:
        return output.mismatch
    if output.equal:
        return "bit-identical"
    if output.difference:
        return output.difference
    odd = [
        f"{name} is {name_figure(value)}"
        for name, value in figures.items()
        if value is not None and not math.isfinite(value)
    ]
    return "; ".join(odd) or None
