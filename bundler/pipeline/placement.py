"""Checks the share of nodes that is assigned to an accelerator against what the profile requires."""

from __future__ import annotations

from collections.abc import Mapping

from bundler.model.errors import StageError
from bundler.model.events import Reporter
from bundler.model.placement import PlacementFacts, read_placement
from bundler.model.plan import ComponentPlan, VariantPlan
from bundler.model.results import StepOutcome

MAX_LISTED_NODES = 8
"""Nodes that a message names; the report has them all."""


def find_placements(
    plan: ComponentPlan, outcomes: Mapping[str, StepOutcome]
) -> tuple[tuple[VariantPlan, PlacementFacts], ...]:
    """The placements that steps of the plan have found, in its order, each with its variant."""
    variants = {variant.name: variant for variant in plan.variants}
    read = (
        (variants[step.variant], read_placement(outcomes[step.id].facts))
        for step in plan.steps
        if step.variant is not None and step.id in outcomes
    )
    return tuple((variant, facts) for variant, facts in read if facts is not None)


def check_placements(plan: ComponentPlan, outcomes: Mapping[str, StepOutcome], reporter: Reporter) -> None:
    """Raise `StageError` where fewer nodes are assigned to a provider than the profile requires; warn where it allows
    that.

    An estimate is never an error: the device decides, and the loader checks there.
    """
    for variant, placement in find_placements(plan, outcomes):
        if placement.share >= variant.least_share:
            continue
        if not variant.tolerates_shortfall and not placement.estimated:
            raise _too_few(reporter.build, placement, variant)
        reporter.warn(f"{_describe(placement, variant)}; the rest runs on the CPU")


def describe_shortfalls(plan: ComponentPlan, outcomes: Mapping[str, StepOutcome]) -> tuple[str, ...]:
    """A sentence for each variant with fewer nodes assigned to its provider than the profile requires."""
    return tuple(
        f"{_describe(placement, variant)}; the rest runs on the CPU"
        for variant, placement in find_placements(plan, outcomes)
        if placement.share < variant.least_share
    )


def _describe(placement: PlacementFacts, variant: VariantPlan) -> str:
    total = placement.assigned + placement.left
    how = "likely to be assigned" if placement.estimated else "assigned"
    return (
        f"variant {variant.name}: {placement.assigned} of {total} nodes {how} to {placement.provider}, "
        f"and the profile requires {variant.least_share:.0%}"
    )


def _too_few(title: str, placement: PlacementFacts, variant: VariantPlan) -> StageError:
    left = [
        f"{node.get('operator', '?')} {node.get('name', '')!r}: {node.get('reason', 'not assigned')}"
        for node in placement.left_nodes[:MAX_LISTED_NODES]
    ]
    more = placement.left - len(left)
    return StageError(
        f"{title}: {_describe(placement, variant)}",
        details=(*left, *((f"and {more} more",) if more > 0 else ())),
        hint=(
            "change the model or its precision (calibration data give an NPU a quantised model), or accept it with "
            f"--set variants.{variant.name}.shortfall=report, or --set variants.{variant.name}.least_share=…"
        ),
    )
