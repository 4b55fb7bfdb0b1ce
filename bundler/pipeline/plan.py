"""`plan`: what a build would do, and which of it is in the cache."""

from __future__ import annotations

from collections.abc import Iterator

from bundler.model.events import Listener
from bundler.model.plan import Step
from bundler.pipeline.prepare import Prepared, prepare
from bundler.pipeline.requests import BuildRequest
from bundler.pipeline.results import PlanResult, StepPreview
from bundler.pipeline.whole import list_pipeline_steps
from bundler.pipeline.workspace import Workspace
from bundler.stages.registry import find_stage


def plan(request: BuildRequest, workspace: Workspace, listener: Listener) -> PlanResult:
    """Plan one build without running any step but the inspection of the model."""
    prepared = prepare(request, workspace, listener)
    previews = tuple(preview for part in prepared.parts for preview in _preview(part, workspace))
    return PlanResult(plan=prepared.plan, steps=(*previews, *map(_preview_pipeline, list_pipeline_steps(prepared))))


def _preview_pipeline(step: Step) -> StepPreview:
    return StepPreview(
        id=step.id,
        title=step.title,
        state="stale",
        reason="it always runs, since the code that it calls may read anything",
        environment=step.environment,
        options=step.options,
    )


def _preview(part: Prepared, workspace: Workspace) -> Iterator[StepPreview]:
    steps = part.plan.steps
    states = workspace.executor.explain(steps, part.sources, part.title)
    for step, status in zip(steps, states, strict=True):
        yield StepPreview(
            id=part.label(step.id),
            title=find_stage(step.stage).title,
            state=status.state,
            reason=status.reason or step.reason,
            environment=step.environment,
            options=step.options,
        )
