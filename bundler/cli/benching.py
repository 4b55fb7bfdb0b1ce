"""What `bundler bench` does and prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from bundler.api.bench import VariantTimes, bench
from bundler.cli.console import ProgressStyle, open_console
from bundler.cli.options import progress_style
from bundler.cli.printing import echo, echo_lines, print_json, printable
from bundler.cli.timetable import throughput_lines, timetable_lines
from bundler.model.errors import UsageError
from bundler.model.measurement import Timing
from bundler.pipeline.workshop import open_workshop
from bundler.reporting.claims import doubt_machine

MOST_CALLERS = 256


def parse_callers(text: str) -> tuple[int, ...]:
    """`1,2,4` as numbers, each once. Raises `UsageError`."""
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(part.isdecimal() and 1 <= int(part) <= MOST_CALLERS for part in parts):
        raise UsageError(
            f"--callers {text}: not numbers from 1 to {MOST_CALLERS} with commas between", hint="--callers 1,2,4"
        )
    return tuple(dict.fromkeys(int(part) for part in parts))


def run_bench(
    bundles: tuple[Path, ...],
    timing: Timing,
    *,
    baseline: Path | None,
    on: str | None,
    sandbox: bool,
    cache: str | None,
    as_json: bool,
    progress: str,
) -> None:
    """Time the bundles and print them side by side, with what speaks against the figures."""
    busy = doubt_machine()
    style = cast("ProgressStyle", progress_style(progress, json=as_json))
    with open_workshop(cache, 1, sandbox=sandbox) as workshop, open_console(style) as listener:
        times = bench(bundles, baseline, workshop, listener, on, timing=timing)
    doubts = [*([busy] if busy else []), *_list_doubts(times)]
    if as_json:
        print_json({"variants": times, "timing": timing, "warnings": doubts})
        return
    echo_lines((*timetable_lines(times), *_describe_timing(timing), *throughput_lines(times)))
    for doubt in doubts:
        echo(f"warning: {doubt}", err=True)
    if doubts:
        longer = f"--seconds {timing.seconds * 4 if timing.seconds else 30:g}"
        echo(f"hint: time it on a machine that does nothing else, and for longer: {longer}", err=True)


def _describe_timing(timing: Timing) -> Iterator[str]:
    """What was not as always."""
    rows = f"{timing.batch} rows a call" if timing.batch else ""
    threads = f"{timing.threads} thread{'' if timing.threads == 1 else 's'} inside a call" if timing.threads else ""
    if rows or threads:
        yield f"with {' and '.join(filter(None, (rows, threads)))}, in the bundle and in a plain session"


def _list_doubts(times: Sequence[VariantTimes]) -> Iterator[str]:
    for one in times:
        for doubt in one.doubts:
            yield f"{printable(one.bundle.name, 60)}, {one.variant}: {doubt}"
