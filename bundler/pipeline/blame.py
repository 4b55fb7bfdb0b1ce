"""When a step that gives precision away has broken the gate: the nodes most to blame, and how to keep them."""

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

_TOLD = 5
"""Tensors that a message names."""
_KEPT = 3
"""Nodes that the hint keeps out at once: enough to see whether it helps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """What is to blame: lines for people, and the nodes that should keep their precision, the worst first."""

    lines: tuple[str, ...] = ()
    remedy: tuple[str, ...] = ()


def lossy_step(prepared: Prepared, verdict: Verdict) -> Step | None:
    """The step before the judged model, or the one that made it, that gives precision away; None where none does."""
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
) -> Blame:
    """The nodes at which the step `lossy` loses the accuracy. A failure to find them is a line, never an error: what
    the user must hear is that the gate is broken.
    """
    step = Step(
        id=f"{lossy.id}/blame", stage=SPEC.name, inputs={"model": "before", "changed": "after", "samples": "set"}
    )
    try:
        sources = {
            "before": _source(prepared, outcomes, lossy.inputs["model"]),
            "after": _source(prepared, outcomes, lossy.id),
            "set": _source(prepared, outcomes, verdict.step.inputs["golden"]),
        }
        asked = Reporter(reporter.listener, f"{prepared.title}, nodes to blame")
        facts = workspace.executor.execute((step,), sources, asked)[step.id].read_facts(Facts)
    except BundlerError as error:
        return Blame(lines=(f"the nodes to blame were not found: {error.message}",))
    return describe_error_sources(facts.tensors)


def _source(prepared: Prepared, outcomes: Mapping[str, StepOutcome], name: str) -> Source:
    """What a step made, or a file of the user's, as a source of another plan."""
    if name in prepared.sources:
        return prepared.sources[name]
    return source_of(outcomes[name])


def describe_error_sources(tensors: Sequence[LossyTensor]) -> Blame:
    """The facts of `attribute_error` in words."""
    if not tensors:
        return Blame()
    remedy = dict.fromkeys(name for tensor in tensors for name in tensor.remedy)
    lines = [f"to blame: {_describe(tensor)}" for tensor in tensors[:_TOLD]]
    return Blame(lines=tuple(lines), remedy=tuple(remedy))


def _describe(tensor: LossyTensor) -> str:
    node = f"node {tensor.node!r}" if tensor.node else "a node without a name"
    what = "weight" if tensor.kind == "weight" else "tensor"
    ratio = tensor.sqnr_db
    left = "is no finite number any more" if ratio is None else f"keeps {ratio:g} dB"
    return f"{node} ({tensor.operator}): {what} {tensor.tensor!r} {left}"


def hint_for_loss(prepared: Prepared, lossy: Step, blame: Blame, setting: str) -> str:
    """What to do about a step that gives too much precision away; `setting` widens the limit that was missed."""
    takes = any(method.stage == lossy.stage and "exclude_nodes" in method.takes for method in METHODS.values())
    names = [name for name in blame.remedy if name.isprintable()][:_KEPT]
    other = f"choose another precision.method, or widen the gate with --set {setting}"
    if not takes or not names:
        return other
    kept = [*prepared.profile.precision.exclude_nodes, *names]
    value = f"precision.exclude_nodes={json.dumps(kept, ensure_ascii=False)}"
    return f"keep the worst as they were with --set {shlex.quote(value)}, {other}"
