"""The summary of finished builds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from bundler.cli.accuracy import accuracy_lines
from bundler.cli.failures import error_lines
from bundler.cli.printing import echo, echo_lines, echo_row, echo_rows
from bundler.support.text import format_bytes
from bundler.verification.words import describe_pipeline

if TYPE_CHECKING:
    from bundler.pipeline.results import BuildResult, ChosenPrecision, Failure, FirstVisit, PlacementResult


def describe_finished(done: Sequence[BuildResult], total: int) -> Iterator[str]:
    """Which bundles were finished before an interruption."""
    if not done:
        yield "no bundle was changed"
        return
    yield f"{len(done)} of {total} bundles {'was' if len(done) == 1 else 'were'} finished; the others were not changed:"
    yield from (f"  {result.bundle}" for result in done)


def print_summary(results: Sequence[BuildResult], failures: Sequence[Failure], *, quiet: bool = False) -> None:
    """Print what was built and its accuracy; failures go to standard error. Where it is `quiet`, a line for each bundle
    says what it is, how far it was verified, and whether it may be shipped.
    """
    for result in results:
        if quiet:
            done = f"{result.bundle}  {'up to date' if result.up_to_date else f'built in {result.seconds:.1f} s'}"
            reservations = "".join(f"; NOT FOR SHIPPING: {reason}" for reason in result.reservations)
            echo(f"{done}, {result.proof}, SHA-256 {result.digest}{reservations}")
            continue
        where = f"({result.target}, {result.format})"
        built = f"Built {result.bundle} in {result.seconds:.1f} s"
        echo(f"{f'{result.bundle} is up to date' if result.up_to_date else built} {where}")
        for reason in result.reservations:
            echo(f"  NOT FOR SHIPPING: {reason}")
        echo_rows(result.verified)
        for head, text in (*_list_judged(result), *_list_files(result)):
            echo_row(head, text)
    print_failures(failures)


def print_failures(failures: Sequence[Failure]) -> None:
    """Print failures and their causes on standard error."""
    for failure in failures:
        request = failure.request
        echo_lines(error_lines(failure.error, f"{request.where}{request.subject} → {request.target}: "), err=True)


def _list_judged(result: BuildResult) -> Iterator[tuple[str, str]]:
    """Rows on accuracy, the chosen precision and the assigned nodes."""
    for accuracy in result.accuracies:
        yield from zip_longest(("Accuracy",), accuracy_lines(accuracy), fillvalue="")
    yield from (("Precision", _describe_choice(choice)) for choice in result.precisions)
    for metric in result.metrics:
        yield "Metric", f"{metric.variant}: {metric.value:.6g} (original model {metric.reference:.6g})"
    yield from (("Pipeline", text) for text in describe_pipeline(result.pipeline))
    yield from (("Placement", _describe_placement(placed)) for placed in result.placements)


def _list_files(result: BuildResult) -> Iterator[tuple[str, str]]:
    model = f"{format_bytes(result.model_bytes)} (was {format_bytes(result.source_bytes)})"
    yield "Size", f"model {model}, bundle {format_bytes(result.bundle_bytes)}"
    if result.first_visits:
        yield "Download", f"first visit {_describe_visits(result.first_visits)}"
    yield "Report", str(result.report)
    yield "Digest", f"{result.digest} (SHA-256 of bundle.json)"


def _describe_placement(placed: PlacementResult) -> str:
    """`htp: 5 of 5 nodes assigned to …`, with a mark where that is less than the profile requires."""
    by = f" by {placed.estimated_by}" if placed.estimated_by else ""
    about = f" (estimated{by}, without the device)" if placed.estimated else ""
    assigned = f"{placed.variant}: {placed.assigned} of {placed.total} nodes assigned to {placed.provider}{about}"
    gain = f"; {placed.gain}" if placed.gain else ""
    if placed.assigned >= placed.least_share * placed.total:
        return f"{assigned}{gain}"
    share = f"{placed.least_share:.0%}"
    return f"FEWER NODES THAN REQUIRED: {assigned}; the profile requires {share}, the CPU runs the rest{gain}"


def _describe_choice(choice: ChosenPrecision) -> str:
    """`static-int8 for cpu, 0.43 of the latency (measured)`."""
    if choice.method == "none" and choice.ratio is not None:
        why = (
            f"no other method that meets the gate is faster, or smaller by 10% and 1 MB and no slower ({choice.timing})"
        )
        return f"none for {choice.variant}: {why}"
    if choice.ratio is None:
        return f"{choice.method} for {choice.variant}"
    latency = f"{choice.ratio:.2f} of the original model's latency ({choice.timing})"
    if choice.doubt:
        latency = f"latency: {choice.doubt} ({choice.timing}: {choice.ratio:.2f} of the original model's)"
    return f"{choice.method} for {choice.variant}, {latency}"


def _show_range(least: int, most: int) -> str:
    low, high = format_bytes(least), format_bytes(most)
    number, _, unit = low.partition(" ")
    if low == high:
        return high
    return f"{number if high.endswith(unit) else low} to {high}"


def _describe_visits(visits: tuple[FirstVisit, ...]) -> str:
    """`2.7 to 4.0 MB (webgpu), 2.8 MB (wasm) with brotli`: a range where a variant's builds of the runtime differ."""
    names = dict.fromkeys(visit.variant for visit in visits)
    sizes = {name: sorted(visit.brotli for visit in visits if visit.variant == name) for name in names}
    shown = [f"{_show_range(found[0], found[-1])} ({name})" for name, found in sizes.items()]
    return f"{', '.join(shown)} with brotli; later visits load it from the browser's cache"
