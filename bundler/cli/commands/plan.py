"""`bundler plan`."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import api
from bundler.api import BuildRequest, Settings
from bundler.cli.answers import keep_answer
from bundler.cli.options import Given, Json, Only, OptionsOf, Targets
from bundler.cli.plain import only_safety
from bundler.cli.printing import echo, print_json, printable
from bundler.cli.requests import make_requests
from bundler.cli.summary import print_failures
from bundler.model.requirements import describe_need

if TYPE_CHECKING:
    from bundler.api import Failure, PlanResult
    from bundler.model.plan import BuildPlan
    from bundler.pipeline.results import StepPreview

EPILOG = """Examples:

  bundler plan model.onnx --target linux-x64

  bundler plan   # everything in bundler.toml"""

CHANGES_NO_STEP = ("output", "version", "package_name", "prove", "measure", "on")


def run(
    models: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="MODEL",
            help="ONNX files, hf:FOLDER or hf:NAME; without any, the project file's. NAME=MODEL for each makes one "
            "bundle of all.",
        ),
    ] = None,
    *,
    target: Targets = None,
    given: Annotated[Given, OptionsOf(BuildRequest, without=CHANGES_NO_STEP)],
    only: Only = None,
    settings: Annotated[Settings, OptionsOf(Settings, without=("jobs",))],
    json: Json = False,
) -> None:
    """Plan and print all requests; exits with the code of the first failure."""
    names, picked = target or (), only or ()
    if models:
        planned = api.plan_all(make_requests(models, names, given, picked), settings, only_safety())
    else:
        planned = api.plan_project(targets=names, only=picked, given=given, settings=settings, listener=only_safety())
    failures = [item for item in planned if isinstance(item, api.Failure)]
    if len(planned) == 1 and failures:
        raise failures[0].located_error
    results = [item for item in planned if not isinstance(item, api.Failure)]
    if json:
        print_json(results[0] if models and len(planned) == 1 else _document(results, failures))
    else:
        _print_all(results, failures)
    if failures:
        raise typer.Exit(failures[0].error.exit_code)
    if all(step.state == "cached" for result in results for step in result.steps):
        keep_answer()


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
    shown = [f"{counts[state]} {state}" for state in ("cached", "stale", "new", "unknown") if counts[state]]
    return f"steps {', '.join(shown)}"


def _print_plan(result: PlanResult) -> None:
    echo(f"{result.plan.name} → {result.plan.target} ({result.plan.emitter}, {result.plan.format})")
    width = max(len(step.id) for step in result.steps)
    for number, step in enumerate(result.steps, start=1):
        echo(f"  {number:2} {step.id:<{width}}  {step.state:<7} {printable(step.reason)}")
    _print_rest(result.plan)


def _print_rest(plan: BuildPlan) -> None:
    """Decisions, requirements on the device, and notes."""
    for component in plan.components:
        echo("decisions" if plan.sole else f"decisions on {component.name}")
        for decision in component.decisions:
            echo(f"  {printable(f'{decision.subject}: {decision.choice}: {decision.reason}', 400)}")
    needs = [
        (plan.label(component.name, variant.name), need)
        for component in plan.components
        for variant in component.variants
        for need in variant.needs
    ]
    if needs:
        echo("requirements on the device (not in the bundle)")
    for name, need in needs:
        echo(f"  {name}: {describe_need(need)}")
    for component in plan.components:
        for note in component.notes:
            whose = "" if plan.sole else f"{component.name}: "
            echo(f"{'' if note.level == 'info' else 'warning: '}{whose}{printable(note.text, 600)}")
