"""Whether accelerators took what the profile asks for: a share of the graph's nodes, counted when it was compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bundler.model.errors import StageError
from bundler.model.events import Listener, Message
from bundler.model.plan import BuildPlan, VariantPlan
from bundler.model.results import StepOutcome
from bundler.model.stage import Note

_SHOWN = 8
"""Nodes that a message names; the report has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Nodes of a variant's graph that its first provider took and left; `estimated` where nobody compiled it here."""

    variant: str
    provider: str
    taken: int
    left: int
    left_nodes: tuple[Mapping[str, Any], ...]
    estimated: bool

    @property
    def share(self) -> float:
        """The share of nodes taken; of none, all."""
        return self.taken / (self.taken + self.left) if self.taken + self.left else 1.0


def find_placements(plan: BuildPlan, outcomes: Mapping[str, StepOutcome]) -> tuple[Placement, ...]:
    """The placements that steps of the plan have found, in its order."""
    found = []
    for step in plan.steps:
        facts = outcomes[step.id].facts if step.id in outcomes else {}
        if step.variant is not None and {"provider", "taken", "left"} <= facts.keys():
            found.append(
                Placement(
                    variant=step.variant,
                    provider=facts["provider"],
                    taken=facts["taken"],
                    left=facts["left"],
                    left_nodes=tuple(facts.get("left_nodes", ())),
                    estimated=bool(facts.get("estimated")),
                )
            )
    return tuple(found)


def check_placements(title: str, plan: BuildPlan, outcomes: Mapping[str, StepOutcome], listener: Listener) -> None:
    """Raise `StageError` where a provider took less than the profile's share; say so where the profile allows it.

    An estimate is never an error: the device decides, and the loader checks there.
    """
    variants = {variant.name: variant for variant in plan.variants}
    for placement in find_placements(plan, outcomes):
        variant = variants[placement.variant]
        if placement.share >= variant.least_share:
            continue
        if not variant.tolerates_shortfall and not placement.estimated:
            raise _too_few(title, placement, variant)
        text = f"{title}: {_tell(placement, variant)}; the rest runs on the CPU"
        listener(Message(build=title, note=Note(text=text, level="warning")))


def _tell(placement: Placement, variant: VariantPlan) -> str:
    total = placement.taken + placement.left
    took = "is likely to take" if placement.estimated else "took"
    return (
        f"variant {placement.variant}: {placement.provider} {took} {placement.taken} of {total} nodes, "
        f"less than the {variant.least_share:.0%} that the profile asks for"
    )


def _too_few(title: str, placement: Placement, variant: VariantPlan) -> StageError:
    left = [
        f"{node.get('operator', '?')} {node.get('name', '')!r}: {node.get('reason', 'not taken')}"
        for node in placement.left_nodes[:_SHOWN]
    ]
    more = placement.left - len(left)
    return StageError(
        f"{title}: {_tell(placement, variant)}",
        details=(*left, *((f"and {more} more",) if more > 0 else ())),
        hint=(
            "change the model or its precision (calibration data give an NPU a quantised model), or accept it with "
            f"--set variants.{placement.variant}.shortfall=report, or --set variants.{placement.variant}.least_share=…"
        ),
    )
