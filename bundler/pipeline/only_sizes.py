"""Dimensions that a model leaves open although it runs at one size only: the bundle fixes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from bundler.model.golden_inputs import TriedDimension
from bundler.model.plan import ComponentPlan
from bundler.model.requirements import FixedSize
from bundler.model.results import StepOutcome
from bundler.model.signature import Signature
from bundler.planning.sizes import describe_size, find_axes
from bundler.stages.record_golden.spec import Facts


def settle_only_sizes(plan: ComponentPlan, signature: Signature, outcomes: Mapping[str, StepOutcome]) -> ComponentPlan:
    """`plan` with these sizes among those that are fixed, and among its decisions."""
    found = find_only_sizes(outcomes[plan.golden].read_facts(Facts).tried_dimensions, signature)
    if not found:
        return plan
    fixed = {f"dimension {size.name}": describe_size(size) for size in found}
    kept = tuple(fixed.pop(decision.subject, decision) for decision in plan.decisions)
    return replace(plan, fixed_sizes=(*plan.fixed_sizes, *found), decisions=(*kept, *fixed.values()))


def find_only_sizes(tried: Iterable[TriedDimension], signature: Signature) -> tuple[FixedSize, ...]:
    """The dimensions that the search for seeded inputs tried and that run at one size only."""
    return tuple(_fix(item, size, signature) for item in tried if (size := item.only_size) is not None)


def _fix(item: TriedDimension, size: int, signature: Signature) -> FixedSize:
    axes = find_axes(signature, item.symbol) if item.symbol else {item.port: (item.axis,)}
    return FixedSize(name=item.symbol or item.label, size=size, by="model", axes=axes)
