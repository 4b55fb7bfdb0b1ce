"""`bundler build`: from arguments or the project file to requests, and from results to lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import typer

from bundler.cli.accuracy import accuracy_line, device_lines
from bundler.cli.console import ProgressStyle, open_console
from bundler.cli.counting import Count
from bundler.cli.failures import error_lines
from bundler.cli.options import parse_dimensions, parse_shapes, progress_style
from bundler.cli.printing import echo, echo_lines, print_json
from bundler.model.cache import CacheChoice
from bundler.model.errors import BundlerError, UsageError
from bundler.model.events import BuildsStarted, Listener, Message
from bundler.model.golden_inputs import GoldenKind
from bundler.pipeline.requests import BuildRequest, bundle_name
from bundler.pipeline.results import BuildResult, ChosenPrecision, FirstVisit, PlacementResult
from bundler.pipeline.workshop import Workshop, open_workshop, start_early
from bundler.support.text import format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildArguments:
    """The command line of `bundler build` or `bundler plan`, as typed."""

    models: tuple[Path, ...] = ()
    targets: tuple[str, ...] = ()
    output: Path | None = None
    samples: str | None = None
    calibration: str | None = None
    preprocessing: Path | None = None
    dimensions: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    format: str | None = None
    name: str | None = None
    version: str = "1.0.0"
    package_name: str | None = None
    prove: bool = True
    on: str | None = None
    locked: bool = False
    only: tuple[str, ...] = ()
    seed: int = 0
    trust_target: bool = False
    golden: GoldenKind | None = None
    sandbox: bool = False


_OF_ONE_MODEL = ("samples", "calibration", "preprocessing", "dimensions", "shapes", "name", "version", "seed")
"""Options that say something of a model: a project file says it itself."""

_FLAGS = {"dimensions": "dim", "shapes": "shape"}
"""Names on the command line that differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A build that failed while others of the same call may have succeeded."""

    request: BuildRequest
    error: BundlerError

    def to_json(self) -> dict[str, object]:
        """As the document of `--json` has it."""
        return {"model": str(self.request.model), "target": self.request.target, "error": self.error.to_json()}


def run_builds(arguments: BuildArguments, *, cache: CacheChoice, jobs: int, as_json: bool, progress: str) -> None:
    """Build all, print the summary, and exit with the code of the first failure."""
    if not arguments.models:
        from bundler.cli.project_building import build_project  # noqa: PLC0415 - only where no model is named

        finished = build_project(arguments, cache=cache, jobs=jobs, style=_style(progress, as_json=as_json))
    else:
        if arguments.locked:
            hint = "`bundler init` writes one, `bundler lock` its lock"
            raise UsageError("--locked needs a project file", hint=hint)
        requests = make_requests(arguments)
        with (
            open_workshop(cache, jobs, sandbox=arguments.sandbox) as workshop,
            open_console(_style(progress, as_json=as_json)) as listener,
        ):
            start_early(workshop, [request.model for request in requests])
            finished = build_all(_assign_shapes(requests, workshop, listener), workshop, listener, jobs)
    failures = [item for item in finished if isinstance(item, Failure)]
    if len(finished) == 1 and failures:
        raise failures[0].error
    results = [item for item in finished if isinstance(item, BuildResult)]
    if as_json:
        _print_document(results, failures)
    else:
        _print_summary(results, failures)
    if failures:
        raise typer.Exit(failures[0].error.exit_code)


def _assign_shapes(
    requests: tuple[BuildRequest, ...], workshop: Workshop, listener: Listener
) -> tuple[BuildRequest, ...]:
    if not requests[0].shapes:
        return requests
    from bundler.pipeline.shapes import assign_shapes  # noqa: PLC0415 - as in build_all

    return assign_shapes(requests, workshop, listener)


def _style(progress: str, *, as_json: bool) -> ProgressStyle:
    return cast("ProgressStyle", progress_style(progress, json=as_json))


def check_project_options(arguments: BuildArguments, file: str) -> None:
    """Raise `UsageError` for options of one model without a model: they would change nothing."""
    plain = BuildArguments()
    given = [name for name in _OF_ONE_MODEL if getattr(arguments, name) != getattr(plain, name)]
    if given:
        flag = f"--{_FLAGS.get(given[0], given[0])}"
        raise UsageError(
            f"{flag} says something of one model, and no model was given",
            hint=f"write it into {file} (docs/project.md has its keys), or name the model and its target",
        )


def check_clashes(requests: tuple[BuildRequest, ...]) -> None:
    """Raise `UsageError` when two builds would write the same bundle."""
    seen: dict[tuple[str, str, Path], Path] = {}
    for request in requests:
        key = (bundle_name(request), request.target, request.output)
        if key in seen:
            raise UsageError(
                f"{seen[key]} and {request.model} would both become {key[0]}-{request.target}",
                hint="build them one by one with --name, or give each a name in bundler.toml",
            )
        seen[key] = request.model


def _no_target(models: Sequence[Path]) -> UsageError:
    """A target's name among the models is a usual slip."""
    from bundler.profiles.resolve import target_ids  # noqa: PLC0415 - only where it is needed

    named = [str(model) for model in models if str(model) in target_ids()]
    hint = "`bundler targets list` shows the targets; give one with --target"
    if named:
        hint = f"{named[0]} is a target: give it as --target {named[0]}"
    return UsageError("no target given", hint=hint)


def make_requests(arguments: BuildArguments) -> tuple[BuildRequest, ...]:
    """One request for each model and target. Raises `UsageError` when a target is missing, or two builds clash."""
    if arguments.only:
        raise UsageError("--only picks from what a project file names", hint="leave the model out, or --only")
    if not arguments.targets:
        raise _no_target(arguments.models)
    if arguments.name and len(arguments.models) > 1:
        raise UsageError("--name fits one model only", hint="leave it out, or build the models one by one")
    dimensions = parse_dimensions(list(arguments.dimensions))
    shapes = parse_shapes(list(arguments.shapes))
    requests = tuple(
        BuildRequest(
            model=model,
            target=target,
            output=arguments.output or Path("dist"),
            name=arguments.name,
            version=arguments.version,
            package_name=arguments.package_name,
            samples=arguments.samples,
            calibration=arguments.calibration,
            preprocessing=arguments.preprocessing,
            dimensions=dimensions,
            shapes=shapes,
            overrides=arguments.overrides,
            format=arguments.format,
            prove=arguments.prove,
            on=arguments.on,
            seed=arguments.seed,
            trust_target=arguments.trust_target,
            golden=arguments.golden or "samples",
        )
        for model in arguments.models
        for target in arguments.targets
    )
    check_clashes(requests)
    return requests


def build_all(
    requests: tuple[BuildRequest, ...], workshop: Workshop, listener: Listener, jobs: int
) -> list[BuildResult | Failure]:
    """Every request in the order given; one that fails does not stop the others. An interruption says what is done."""
    # Imported here, so that a worker can start before the schema of profiles and all that stands on it is loaded.
    from bundler.pipeline.build import build  # noqa: PLC0415
    from bundler.pipeline.package_names import warn_of_same_packages  # noqa: PLC0415

    done: list[BuildResult] = []
    count = Count(total=len(requests), listener=listener)

    def attempt(request: BuildRequest) -> BuildResult | Failure:
        with count.follow(f"{bundle_name(request)} → {request.target}") as followed:
            try:
                result = build(request, workshop, followed)
            except BundlerError as error:
                if workshop.executor.interrupted:
                    raise
                followed.failed = True
                return Failure(request=request, error=error)
        done.append(result)
        return result

    listener(BuildsStarted(total=len(requests)))
    for note in warn_of_same_packages(requests):
        listener(Message(build="", note=note))
    try:
        if len(requests) == 1:
            return [attempt(requests[0])]
        with ThreadPoolExecutor(max_workers=min(jobs, len(requests))) as pool:
            try:
                return list(pool.map(attempt, requests))
            except KeyboardInterrupt:
                workshop.executor.interrupt()  # leaving the pool waits for all that it runs
                raise
    except KeyboardInterrupt:
        echo_lines(_finished_lines(done, len(requests)), err=True)
        raise


def _finished_lines(done: Sequence[BuildResult], total: int) -> Iterator[str]:
    """What stands after an interruption."""
    if not done:
        yield "no bundle was changed"
        return
    yield f"{len(done)} of {total} bundles {'was' if len(done) == 1 else 'were'} finished; the others were not changed:"
    yield from (f"  {result.bundle}" for result in done)


def _print_document(results: list[BuildResult], failures: list[Failure]) -> None:
    print_json(
        {
            "bundles": results,
            "failures": [item.to_json() for item in failures],
        }
    )


def _print_summary(results: list[BuildResult], failures: list[Failure]) -> None:
    for result in results:
        echo(f"{result.bundle}  {'up to date' if result.up_to_date else f'built in {result.seconds:.1f} s'}")
        echo(
            f"  model {format_bytes(result.source_bytes)} → {format_bytes(result.model_bytes)}; "
            f"bundle {format_bytes(result.bundle_bytes)} ({result.format})"
        )
        for line in (*_describe_judged(result), *(f"NOT FOR SHIPPING: {reason}" for reason in result.reservations)):
            echo(f"  {line}")
        if result.first_visits:
            echo(f"  first visit {_tell_visits(result.first_visits)}")
        echo(f"  bundle.json has SHA-256 {result.digest}")
        echo(f"  report {result.report}")
    print_failures(failures)


def print_failures(failures: Sequence[Failure]) -> None:
    """What failed and why, on standard error."""
    for failure in failures:
        echo_lines(error_lines(failure.error, f"{failure.request.model} → {failure.request.target}: "), err=True)


def _describe_judged(result: BuildResult) -> Iterator[str]:
    """What was verified, how close the answers are, and what was chosen and taken."""
    yield from result.verified
    for accuracy in result.accuracies:
        yield accuracy_line(accuracy)
        yield from device_lines(accuracy)
    yield from (f"precision {_tell_choice(choice)}" for choice in result.precisions)
    for metric in result.metrics:
        yield f"metric of {metric.variant} {metric.value:.6g}; the original model's answers {metric.reference:.6g}"
    yield from (_tell_placement(placed) for placed in result.placements)


def _tell_placement(placed: PlacementResult) -> str:
    """`htp: … takes 5 of 5 nodes`, and loudly where that is less than the profile asks for."""
    about = ", as far as can be said without the device" if placed.estimated else ""
    told = f"{placed.variant}: {placed.provider} takes {placed.taken} of {placed.total} nodes{about}"
    gain = f"; {placed.gain}" if placed.gain else ""
    if placed.taken >= placed.least_share * placed.total:
        return f"{told}{gain}"
    share = f"{placed.least_share:.0%}"
    return f"FEWER NODES THAN ASKED FOR: {told}; the profile asks for {share}, the CPU runs the rest{gain}"


def _tell_choice(choice: ChosenPrecision) -> str:
    """`static-int8 for cpu, 0.43 of the latency (measured)`."""
    if choice.method == "none" and choice.ratio is not None:
        why = f"nothing else that was tried and holds the gate is faster or much smaller ({choice.timing})"
        return f"none for {choice.variant}: {why}"
    if choice.ratio is None:
        return f"{choice.method} for {choice.variant}"
    latency = f"{choice.ratio:.2f} of the unchanged model's latency ({choice.timing})"
    if choice.doubt:
        latency = f"latency: {choice.doubt} ({choice.timing}: {choice.ratio:.2f} of the unchanged model's)"
    return f"{choice.method} for {choice.variant}, {latency}"


def _show_range(least: int, most: int) -> str:
    low, high = format_bytes(least), format_bytes(most)
    number, _, unit = low.partition(" ")
    if low == high:
        return high
    return f"{number if high.endswith(unit) else low} to {high}"


def _tell_visits(visits: tuple[FirstVisit, ...]) -> str:
    """`2.7 to 4.0 MB (webgpu), 2.8 MB (wasm) with brotli`: a range where a variant's builds of the runtime differ."""
    names = dict.fromkeys(visit.variant for visit in visits)
    sizes = {name: sorted(visit.brotli for visit in visits if visit.variant == name) for name in names}
    told = [f"{_show_range(found[0], found[-1])} ({name})" for name, found in sizes.items()]
    return f"{', '.join(told)} with brotli; a second visit takes it from the browser's cache"
