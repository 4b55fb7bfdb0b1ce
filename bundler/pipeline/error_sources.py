"""When a step that reduces precision has broken the gate: the error sources, and how to keep their precision."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bundler.execution.sources import Source, source_of
from bundler.model.errors import BundlerError
from bundler.model.events import Reporter
from bundler.model.plan import Step
from bundler.model.results import StepOutcome
from bundler.pipeline.judging import Verdict
from bundler.pipeline.prepare import Prepared
from bundler.pipeline.workspace import Workspace
from bundler.profiles.methods import METHODS
from bundler.stages.attribute_error.spec import SPEC, Facts, LossyTensor

MAX_LISTED_TENSORS = 5
"""Tensors that a message names."""
MAX_EXCLUDED_NODES = 3
"""Nodes that the hint excludes at once: enough to see whether it helps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSources:
    """Lines for people, and the nodes that should keep their precision, the worst first."""

    lines: tuple[str, ...] = ()
    remedy: tuple[str, ...] = ()


def lossy_step(prepared: Prepared, verdict: Verdict) -> Step | None:
    """The step that made the judged model, or an earlier one, that reduces precision; None where none does."""
    stages = {method.stage for method in METHODS.values()}
    steps = {step.id: step for step in prepared.plan.steps}
    step = steps.get(verdict.judged)
    while step is not None and step.stage not in stages:
        step = steps.get(step.inputs.get("model", ""))
    return step


def find_error_sources(
    prepared: Prepared,
    outcomes: Mapping[str, StepOutcome],
    verdict: Verdict,
    lossy: Step,
    *,
    workspace: Workspace,
    reporter: Reporter,
) -> ErrorSources:
    """The nodes at which the step `lossy` loses the accuracy. A failure to find them is a line, never an error: the
    error is that the gate is broken.
    """
    step = Step(
        id=f"{lossy.id}/error-sources",
        stage=SPEC.name,
        inputs={"model": "before", "changed": "after", "samples": "set"},
    )
    try:
        sources = {
            "before": _source(prepared, outcomes, lossy.inputs["model"]),
            "after": _source(prepared, outcomes, lossy.id),
            "set": _source(prepared, outcomes, verdict.step.inputs["golden"]),
        }
        asked = Reporter(reporter.listener, f"{prepared.title}, error sources")
        facts = workspace.executor.execute((step,), sources, asked)[step.id].read_facts(Facts)
    except BundlerError as error:
        return ErrorSources(lines=(f"the error sources were not found: {error.message}",))
    return describe_error_sources(facts.tensors)


def _source(prepared: Prepared, outcomes: Mapping[str, StepOutcome], name: str) -> Source:
    """The artifact of a step, or a file of the user's, as a source of another plan."""
    if name in prepared.sources:
        return prepared.sources[name]
    return source_of(outcomes[name])


def describe_error_sources(tensors: Sequence[LossyTensor]) -> ErrorSources:
    """The facts of `attribute_error` in words."""
    if not tensors:
        return ErrorSources()
    remedy = dict.fromkeys(name for tensor in tensors for name in tensor.remedy)
    lines = [f"error source: {_describe(tensor)}" for tensor in tensors[:MAX_LISTED_TENSORS]]
    return ErrorSources(lines=tuple(lines), remedy=tuple(remedy))


def _describe(tensor: LossyTensor) -> str:
    node = f"node {tensor.node!r}" if tensor.node else "a node without a name"
    what = "weight" if tensor.kind == "weight" else "tensor"
    ratio = tensor.sqnr_db
    left = "is no longer finite" if ratio is None else f"SQNR {ratio:g} dB"
    return f"{node} ({tensor.operator}): {what} {tensor.tensor!r} {left}"


def hint_for_loss(prepared: Prepared, lossy: Step, sources: ErrorSources, setting: str) -> str:
    """What to do about a step that loses too much precision; `setting` widens the limit that was missed."""
    takes = any(method.stage == lossy.stage and "exclude_nodes" in method.takes for method in METHODS.values())
    excluded = prepared.profile.precision.exclude_nodes
    names = [name for name in sources.remedy if name.isprintable() and name not in excluded][:MAX_EXCLUDED_NODES]
    other = f"choose another precision.method, or widen the gate with --set {setting}"
    if not takes or not names:
        return other
    value = f"precision.exclude_nodes={json.dumps([*excluded, *names], ensure_ascii=False)}"
    return f"keep the precision of the worst nodes with --set {shlex.quote(value)}, {other}"
