"""`bundler plan`: of one model, or of all that the project file names."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence

import typer

from bundler.api.plan import plan
from bundler.cli.building import BuildArguments, Failure, make_requests, print_failures
from bundler.cli.printing import echo, print_json, printable
from bundler.model.cache import CacheChoice
from bundler.model.errors import BundlerError
from bundler.model.events import ignore
from bundler.model.plan import BuildPlan
from bundler.model.requirements import describe_need
from bundler.pipeline.requests import BuildRequest
from bundler.pipeline.results import PlanResult, StepPreview
from bundler.pipeline.shapes import assign_shapes
from bundler.pipeline.workshop import Workshop, open_workshop


def run_plan(arguments: BuildArguments, *, cache: CacheChoice, as_json: bool) -> None:
    """Plan all that is asked for, and print it; exits with the code of the first that cannot be planned."""
    if arguments.models:
        requests = make_requests(arguments)
        with open_workshop(cache, 1, sandbox=arguments.sandbox) as workshop:
            planned = plan_all(assign_shapes(requests, workshop, ignore), workshop)
    else:
        from bundler.cli.project_planning import plan_project  # noqa: PLC0415 - only where no model is named

        planned = plan_project(arguments, cache)
    failures = [item for item in planned if isinstance(item, Failure)]
    if len(planned) == 1 and failures:
        raise failures[0].error
    results = [item for item in planned if isinstance(item, PlanResult)]
    if as_json:
        print_json(results[0] if arguments.models and len(planned) == 1 else _document(results, failures))
    else:
        _print_all(results, failures)
    if failures:
        raise typer.Exit(failures[0].error.exit_code)


def plan_all(requests: Sequence[BuildRequest], workshop: Workshop) -> list[PlanResult | Failure]:
    """Each in the order given; one that cannot be planned does not stop the others."""

    def attempt(request: BuildRequest) -> PlanResult | Failure:
        try:
            return plan(request, workshop, ignore)
        except BundlerError as error:
            return Failure(request=request, error=error)

    return [attempt(request) for request in requests]


def _document(results: Sequence[PlanResult], failures: Sequence[Failure]) -> dict[str, object]:
    return {"plans": results, "failures": [failure.to_json() for failure in failures]}


def _print_all(results: Sequence[PlanResult], failures: Sequence[Failure]) -> None:
    for number, result in enumerate(results):
        if number:
            echo()
        _print_plan(result)
    if len(results) > 1:
        echo()
        echo(f"{len(results)} bundles: {_count_states(step for result in results for step in result.steps)}")
    print_failures(failures)


def _count_states(steps: Iterable[StepPreview]) -> str:
    """`3 steps new, 12 cached`."""
    counts = collections.Counter(step.state for step in steps)
    told = [f"{counts[state]} {state}" for state in ("cached", "stale", "new", "unknown") if counts[state]]
    return f"steps {', '.join(told)}"


def _print_plan(result: PlanResult) -> None:
    echo(f"{result.plan.model_name} → {result.plan.target} ({result.plan.emitter}, {result.plan.format})")
    width = max(len(step.id) for step in result.steps)
    for number, step in enumerate(result.steps, start=1):
        echo(f"  {number:2} {step.id:<{width}}  {step.state:<7} {printable(step.reason)}")
    _print_rest(result.plan)


def _print_rest(plan: BuildPlan) -> None:
    """What was decided, what the device must have, and what a person should know before a build."""
    echo("decisions")
    for decision in plan.decisions:
        echo(f"  {printable(f'{decision.subject}: {decision.choice}: {decision.reason}', 400)}")
    needs = [(variant.name, need) for variant in plan.variants for need in variant.needs]
    if needs:
        echo("must be on the device, for the bundle does not hold it")
    for name, need in needs:
        echo(f"  {name}: {describe_need(need)}")
    for note in plan.notes:
        echo(f"{'warning: ' if note.level == 'warning' else ''}{printable(note.text, 600)}")
