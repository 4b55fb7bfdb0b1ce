"""What `bundler verify` and `bundler diff` do and print."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from bundler.api.requests import VerifyResult
from bundler.cli.console import ProgressStyle, open_console
from bundler.cli.options import progress_style
from bundler.cli.printing import echo, echo_lines, print_json, printable


def print_digests(bundle: Path, digest: str, *, as_json: bool) -> None:
    """Check the digests, run nothing, and print what was checked."""
    from bundler.api.verify import check_digests  # noqa: PLC0415 - diff does not need it

    checked = check_digests(bundle, digest)
    if as_json:
        print_json(checked)
        return
    echo(f"{bundle}: {checked.files} files match their checksums")
    echo(f"bundle.json has SHA-256 {checked.digest}{', as asked' if digest else ''}")
    echo("Not run: only checksums were asked for (--digests-only).")


def run_verify(
    bundle: Path, *, digest: str, browser: Path | None, cache: str | None, as_json: bool, progress: str
) -> None:
    """Verify and print the level that was reached."""
    from bundler.api.verify import verify  # noqa: PLC0415 - diff does not need it
    from bundler.api.workshop import open_workshop  # noqa: PLC0415

    style = cast("ProgressStyle", progress_style(progress, json=as_json))
    with open_workshop(cache, 1) as workshop, open_console(style) as listener:
        result = verify(bundle, workshop, listener, browser, digest)
    if as_json:
        print_json(result)
    else:
        _print_verified(result)


def _print_verified(result: VerifyResult) -> None:
    from bundler.verification.words import (  # noqa: PLC0415 - as above
        BUILDING_HOST,
        describe_verification,
        same_levels,
    )

    echo(f"{result.bundle}: {result.files} files match their checksums")
    for line in describe_verification(result.reached) if result.reached else ():
        echo(line)
    for variant in result.variants:
        if variant.passed and variant.reason:
            echo(f"  {variant.variant}: {variant.reason}")
    for line in (*(f"left out: {text}" for text in result.left_out), *result.shortfalls):
        echo(f"  {line}")
    for reason in result.reservations:
        echo(f"  NOT FOR SHIPPING: {reason}")
    for name in result.unstable_outputs:
        echo(f"  output {printable(name, 80)} is random: only its name, type and shape can be promised")
    if result.reached and result.built and not same_levels(result.built.variants, result.reached.variants):
        for line in describe_verification(result.built, BUILDING_HOST):
            echo(f"When it was built: {line}")


def run_diff(first: Path, second: Path, *, as_json: bool) -> None:
    """Compare two bundles and print what differs."""
    from bundler.reporting.diff import diff_bundles, render_diff  # noqa: PLC0415 - verify does not need it

    difference = diff_bundles(first, second)
    if as_json:
        print_json(difference)
    else:
        echo_lines(render_diff(difference).rstrip("\n").split("\n"))
