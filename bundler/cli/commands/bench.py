"""`bundler bench`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import api
from bundler.api import Settings, Timing
from bundler.cli.console import open_console
from bundler.cli.options import Json, OptionsOf, Progress
from bundler.cli.printing import echo, echo_lines, print_json, printable
from bundler.cli.requests import find_components
from bundler.cli.timetable import throughput_lines, timetable_lines
from bundler.model.errors import UsageError
from bundler.model.options import On
from bundler.model.runtime import SOLE
from bundler.reporting.claims import doubt_machine

if TYPE_CHECKING:
    from bundler.api import VariantTimes

DETAILS = (
    "It checks each bundle's digests, then runs code of the bundle: use it on bundles from sources that you trust."
)

EPILOG = """Examples:

  bundler bench dist/model-linux-x64 --baseline model.onnx

  bundler bench dist/model-linux-x64 --threads 1 --batch 8 --callers 1,2,4"""

MAX_CALLERS = 256


def run(
    bundles: Annotated[list[Path], typer.Argument(help="Folders of bundles.", metavar="BUNDLE")],
    *,
    baseline: Annotated[
        list[Path] | None,
        typer.Option(
            "--baseline", metavar="MODEL", help="ONNX file to compare the bundles with; NAME=MODEL for a component."
        ),
    ] = None,
    pipeline: Annotated[
        Path | None,
        typer.Option(
            "--pipeline", metavar="SAMPLES", help="Time the bundle's own pipeline too, over this folder's files."
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option("--batch", metavar="N", min=1, help="Rows in one call.", show_default="as in the golden sample"),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads", metavar="N", min=1, help="Threads inside one call.", show_default="as set in the bundle"
        ),
    ] = None,
    spinning: Annotated[
        bool | None,
        typer.Option(
            "--spinning/--no-spinning",
            help="Whether idle threads spin instead of sleeping.",
            show_default="as set in the bundle",
        ),
    ] = None,
    callers: Annotated[
        str,
        typer.Option(
            "--callers", metavar="N,N", help="Measure throughput with these numbers of concurrent callers: 1,2,4."
        ),
    ] = "",
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="N", min=0.1, max=600, help="Time for each variant.", show_default="a few"),
    ] = None,
    on: On = None,
    settings: Annotated[Settings, OptionsOf(Settings, without=("cache_readonly", "jobs"))],
    json: Json = False,
    progress: Progress = "auto",
) -> None:
    """Time the bundles and print them side by side, with warnings on the figures."""
    if seconds is not None and math.isnan(seconds):  # it is neither below nor above a bound
        raise UsageError("--seconds nan: not a number from 0.1 to 600", hint="--seconds 30")
    timing = Timing(
        batch=batch or 0,
        threads=threads or 0,
        spinning=spinning,
        callers=parse_callers(callers),
        seconds=seconds or 0.0,
    )
    busy = doubt_machine()
    with open_console(progress, as_json=json) as listener:
        times = api.bench(
            bundles,
            baseline=_read_baseline(baseline or ()),
            timing=timing,
            samples=pipeline,
            on=on,
            settings=settings,
            listener=listener,
        )
    doubts = [*([busy] if busy else []), *_list_doubts(times)]
    if json:
        print_json({"variants": times, "timing": timing, "warnings": doubts})
        return
    echo_lines((*timetable_lines(times), *_describe_timing(timing), *throughput_lines(times)))
    for doubt in doubts:
        echo(f"warning: {doubt}", err=True)
    if doubts:
        longer = f"--seconds {timing.seconds * 4 if timing.seconds else 30:g}"
        echo(f"hint: measure on an idle machine, and for longer: {longer}", err=True)


def _read_baseline(models: Sequence[Path]) -> dict[str, Path]:
    """The models to compare with, by component. Raises `UsageError` for several without names."""
    components = find_components(models)
    if not components and len(models) > 1:
        raise UsageError(
            "--baseline was given twice without the name of a component",
            hint="--baseline NAME=MODEL for a component of a bundle",
        )
    return components or ({SOLE: models[0]} if models else {})


def parse_callers(text: str) -> tuple[int, ...]:
    """`1,2,4` as numbers, each once. Raises `UsageError`."""
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(re.fullmatch("[0-9]{1,3}", part) and 1 <= int(part) <= MAX_CALLERS for part in parts):
        raise UsageError(
            f"--callers {text}: not a comma-separated list of numbers from 1 to {MAX_CALLERS}", hint="--callers 1,2,4"
        )
    return tuple(dict.fromkeys(int(part) for part in parts))


def _describe_timing(timing: Timing) -> Iterator[str]:
    """Settings that differ from the defaults."""
    rows = f"{timing.batch} rows a call" if timing.batch else ""
    threads = f"{timing.threads} thread{'' if timing.threads == 1 else 's'} inside a call" if timing.threads else ""
    spinning = {None: "", True: "spinning threads", False: "no spinning"}[timing.spinning]
    if rows or threads or spinning:
        yield f"with {' and '.join(filter(None, (rows, threads, spinning)))}, in the bundle and in a plain session"


def _list_doubts(times: Sequence[VariantTimes]) -> Iterator[str]:
    for one in times:
        for doubt in one.doubts:
            yield f"{printable(one.bundle.name, 60)}, {one.variant}: {doubt}"
