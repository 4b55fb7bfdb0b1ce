"""The models of a build, from the original one to those that ship: sizes, nodes and operators by stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from bundler.model.plan import Step
from bundler.model.results import StepOutcome
from bundler.reporting.data import ComponentReport
from bundler.reporting.figures import show_percent
from bundler.reporting.page import Bar, BarChart, OperatorRow, Operators
from bundler.reporting.scales import linear_scale
from bundler.stages.registry import find_stage
from bundler.support.text import format_bytes

_MODELS = {".onnx", ".ort"}
_SHOWN = 24
"""Operators that get a row of their own; the rarest others share one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelState:
    """The model after one step; the first is the original model. `operators` is None where they were not counted."""

    step: str | None
    title: str
    variant: str | None
    size: int
    operators: Mapping[str, int] | None
    unchanged: bool = False

    @property
    def nodes(self) -> int | None:
        """The number of nodes, None where they were not counted."""
        return None if self.operators is None else sum(self.operators.values())


def follow_model(part: ComponentReport) -> tuple[ModelState, ...]:
    """The original model, then the model after each step that wrote one, in the order of the plan."""
    outcomes = {outcome.step: outcome for outcome in part.outcomes}
    states = [
        ModelState(
            step=None,
            title="Original model",
            variant=None,
            size=part.facts.total_bytes,
            operators=part.facts.operators,
        )
    ]
    for step in part.plan.steps:
        outcome = outcomes.get(step.id)
        if outcome is not None and _is_model(outcome):
            states.append(_state(step, outcome, part, outcomes))
    return tuple(states)


def title_stage(stage: str) -> str:
    """A stage's title, as progress lines have it. Raises `UsageError` when it is not registered."""
    return find_stage(stage).title


def title_step(step: Step) -> str:
    """A step's title: its own where it has one, otherwise its stage's."""
    return step.title or title_stage(step.stage)


def show_tag(part: ComponentReport, variant: str | None) -> str:
    """The variant's name, if the bundle has several variants."""
    return variant if variant and len(part.plan.variants) > 1 else ""


def chart_sizes(part: ComponentReport, states: tuple[ModelState, ...]) -> BarChart:
    """Bytes of the model after each stage."""
    return _chart_states(part, states, [state.size for state in states], lambda value: format_bytes(round(value)))


def count_operators(part: ComponentReport, states: tuple[ModelState, ...]) -> Operators | None:
    """Nodes and operators by stage; None when none were counted."""
    counted = [state for state in states if state.operators]
    if not counted:
        return None
    return Operators(
        chart=_chart_states(part, counted, [state.nodes or 0 for state in counted], lambda value: f"{value:,.0f}"),
        stages=tuple(" ".join(filter(None, (s.title, show_tag(part, s.variant)))) for s in counted),
        rows=_operator_rows(counted),
    )


def _is_model(outcome: StepOutcome) -> bool:
    return outcome.entry is not None and PurePosixPath(outcome.entry).suffix in _MODELS


def _state(step: Step, outcome: StepOutcome, part: ComponentReport, outcomes: Mapping[str, StepOutcome]) -> ModelState:
    source = outcomes.get(step.inputs.get("model", ""))
    digest = outcome.artifact.digest if outcome.artifact else None
    unchanged = source is not None and source.artifact is not None and source.artifact.digest == digest
    return ModelState(
        step=step.id,
        title=title_step(step),
        variant=step.variant,
        size=outcome.artifact.size if outcome.artifact else part.facts.total_bytes,
        operators=_find_operators(step, outcome, part, outcomes),
        unchanged=unchanged,
    )


def _find_operators(
    step: Step, outcome: StepOutcome, part: ComponentReport, outcomes: Mapping[str, StepOutcome]
) -> Mapping[str, int] | None:
    """The counts of the step, or of a later step that only reads its model."""
    readers = (s.id for s in part.plan.steps if s.inputs.get("model") == step.id and s.stage != "compare")
    followers = (outcomes[reader] for reader in readers if reader in outcomes and not _is_model(outcomes[reader]))
    for candidate in (outcome, *followers):
        counts = _read_counts(candidate.facts.get("operators"))
        if counts:
            return counts
    return None


def _read_counts(found: Any) -> dict[str, int]:
    if not isinstance(found, Mapping) or not all(type(count) is int for count in found.values()):
        return {}
    return {str(name): count for name, count in found.items()}


def _chart_states(
    part: ComponentReport, states: Sequence[ModelState], amounts: Sequence[int], show: Callable[[float], str]
) -> BarChart:
    """A bar for each state, compared with the first."""
    scale = linear_scale(map(float, amounts), show)
    bars = tuple(
        Bar(
            label=state.title,
            tag=show_tag(part, state.variant),
            value=show(amount),
            detail="" if state.step is None else show_percent(amount, amounts[0]),
            share=scale.place(amount),
            before=state.step is None,
        )
        for state, amount in zip(states, amounts, strict=True)
    )
    return BarChart(scale=scale, bars=bars)


def _operator_rows(counted: list[ModelState]) -> tuple[OperatorRow, ...]:
    tables = [state.operators or {} for state in counted]
    names = {name for table in tables for name in table}
    ranked = sorted(names, key=lambda name: (-max(table.get(name, 0) for table in tables), name))
    rows = [_operator_row(name, [table.get(name, 0) for table in tables]) for name in ranked[:_SHOWN]]
    rest = ranked[_SHOWN:]
    if rest:
        rows.append(_operator_row(f"{len(rest)} others", [sum(t.get(name, 0) for name in rest) for t in tables]))
    return tuple(rows)


def _operator_row(name: str, counts: list[int]) -> OperatorRow:
    before = [counts[0], *counts]
    return OperatorRow(
        name=name,
        counts=tuple(f"{count:,}" if count else "" for count in counts),
        changed=tuple(now != then for now, then in zip(counts, before, strict=False)),
    )
