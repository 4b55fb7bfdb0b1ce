"""`bundler verify`, `bundler diff` and `bundler bench`: what can be asked of a finished bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bundler.cli.options import Cache, Json, On, Only, Progress, Sandbox
from bundler.model.errors import UsageError

VERIFY_EPILOG = """Examples:

  bundler verify dist/model-linux-x64 --json

  bundler verify dist/model-linux-x64 --digests-only     (runs nothing of the bundle)

  bundler verify model-linux-x64 --digest 0f4b…     (must be the bundle whose build printed this)

  bundler verify dist/model-web-webgpu --on browser:/usr/bin/chromium

  bundler verify --only 'raspberry-*'     (of the bundles that bundler.toml names)"""

BENCH_EPILOG = """Examples:

  bundler bench dist/model-linux-x64 --baseline model.onnx

  bundler bench dist/model-linux-x64 --threads 1 --batch 8 --callers 1,2,4"""


def register(app: typer.Typer) -> None:
    """Add the commands of this file to `app`."""
    app.command(name="verify", epilog=VERIFY_EPILOG)(verify)
    app.command(name="diff", epilog="Example:\n\n  bundler diff old/model-linux-x64 dist/model-linux-x64")(diff)
    app.command(name="bench", epilog=BENCH_EPILOG)(bench)


def verify(
    bundle: Annotated[
        Path | None, typer.Argument(help="A bundle's folder; without one, the bundles of the project file.")
    ] = None,
    *,
    only: Only = None,
    digest: Annotated[
        str, typer.Option("--digest", metavar="SHA256", help="What the SHA-256 of its bundle.json must be.")
    ] = "",
    digests_only: Annotated[
        bool, typer.Option("--digests-only", help="Check the digests and run nothing of the bundle.")
    ] = False,
    on: On = None,
    sandbox: Sandbox = False,
    cache: Cache = None,
    json: Json = False,
    progress: Progress = "auto",
) -> None:
    """Check a bundle's digests, then run its golden set in its own runtime.

    It runs code that came with the bundle: use it on bundles whose origin you trust, or with --digests-only.
    """
    from bundler.cli.checking import Asked, print_digests, run_verify  # noqa: PLC0415 - keeps --help quick

    bundles = (bundle,) if bundle else _find_project_bundles(only or [], digest)
    if bundle and only:
        raise UsageError("--only picks from what a project file names", hint="leave the bundle out, or --only")
    asked = Asked(bundles=bundles, several=bundle is None, digest=digest, on=on, as_json=json)
    if digests_only:
        print_digests(asked)
    else:
        run_verify(asked, sandbox=sandbox, cache=cache, progress=progress)


def _find_project_bundles(only: list[str], digest: str) -> tuple[Path, ...]:
    from bundler.cli.project_verifying import find_bundles  # noqa: PLC0415 - only where no bundle is named

    if digest:
        raise UsageError("--digest is that of one bundle, and none was named", hint="bundler verify BUNDLE --digest …")
    return find_bundles(only)


def diff(
    first: Annotated[Path, typer.Argument(help="A bundle's folder.", metavar="A")],
    second: Annotated[Path, typer.Argument(help="Another bundle's folder.", metavar="B")],
    *,
    json: Json = False,
) -> None:
    """Show what changed most between two bundles, then all that differs: versions, files, operators, options, accuracy,
    proof.
    """
    from bundler.cli.checking import run_diff  # noqa: PLC0415 - keeps --help quick

    run_diff(first, second, as_json=json)


def bench(
    bundles: Annotated[list[Path], typer.Argument(help="Folders of bundles.", metavar="BUNDLE")],
    *,
    baseline: Annotated[Path | None, typer.Option("--baseline", help="An ONNX file to measure beside them.")] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch", metavar="N", min=1, help="Rows of one call.", show_default="those of the golden sample"
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads", metavar="N", min=1, help="Threads inside one call.", show_default="the bundle's own number"
        ),
    ] = None,
    callers: Annotated[
        str,
        typer.Option("--callers", metavar="N,N", help="Count the calls a second of so many callers at once: 1,2,4."),
    ] = "",
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", metavar="N", min=0.1, max=600, help="For how long each variant.", show_default="a few"
        ),
    ] = None,
    on: On = None,
    sandbox: Sandbox = False,
    cache: Cache = None,
    json: Json = False,
    progress: Progress = "auto",
) -> None:
    """Measure opening and latency of bundles in their own runtime, side by side, and throughput when asked.

    It checks each bundle's digests, then runs code that came with it: use it on bundles whose origin you trust.
    """
    from bundler.cli.benching import parse_callers, run_bench  # noqa: PLC0415 - keeps --help quick
    from bundler.model.measurement import Timing  # noqa: PLC0415

    timing = Timing(batch=batch or 0, threads=threads or 0, callers=parse_callers(callers), seconds=seconds or 0.0)
    run_bench(
        tuple(bundles),
        timing,
        baseline=baseline,
        on=on,
        sandbox=sandbox,
        cache=cache,
        as_json=json,
        progress=progress,
    )
