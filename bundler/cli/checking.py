"""What `bundler verify` and `bundler diff` do and print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

import typer

from bundler.cli.console import ProgressStyle, open_console
from bundler.cli.failures import error_lines
from bundler.cli.options import progress_style
from bundler.cli.printing import echo, echo_lines, print_json, printable
from bundler.model.errors import BundlerError
from bundler.pipeline.results import DigestResult, VerifyResult

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fault:
    """A bundle that is not what it should be."""

    bundle: Path
    error: BundlerError


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The command line of `bundler verify`; with `several`, the bundles are those of a project, told side by side."""

    bundles: tuple[Path, ...]
    several: bool = False
    digest: str = ""
    on: str | None = None
    as_json: bool = False


def print_digests(asked: Asked) -> None:
    """Check the digests, run nothing, and print what was checked."""
    from bundler.api.verify import check_digests  # noqa: PLC0415 - diff does not need it

    def show(checked: DigestResult) -> None:
        echo(f"{checked.bundle}: {checked.files} files match their checksums")
        echo(f"bundle.json has SHA-256 {checked.digest}{', as asked' if asked.digest else ''}")
        echo("Not run: only checksums were asked for (--digests-only).")

    _show_each(asked, _check_each(asked.bundles, lambda bundle: check_digests(bundle, asked.digest)), show)


def run_verify(asked: Asked, *, sandbox: bool, cache: str | None, progress: str) -> None:
    """Verify and print the level that was reached."""
    from bundler.api.verify import verify  # noqa: PLC0415 - diff does not need it
    from bundler.pipeline.workshop import open_workshop  # noqa: PLC0415

    style = cast("ProgressStyle", progress_style(progress, json=asked.as_json))
    with open_workshop(cache, 1, sandbox=sandbox) as workshop, open_console(style) as listener:
        checked = _check_each(asked.bundles, lambda bundle: verify(bundle, workshop, listener, asked.on, asked.digest))
    _show_each(asked, checked, _print_verified)


def _check_each(bundles: tuple[Path, ...], check: Callable[[Path], Result]) -> list[Result | _Fault]:
    """What came of each; one that fails does not stop the others."""

    def attempt(bundle: Path) -> Result | _Fault:
        try:
            return check(bundle)
        except BundlerError as error:
            return _Fault(bundle=bundle, error=error)

    return [attempt(bundle) for bundle in bundles]


def _show_each(asked: Asked, checked: list[Result | _Fault], show: Callable[[Result], None]) -> None:
    """Print what was found; exits with the code of the first that failed."""
    faults = [item for item in checked if isinstance(item, _Fault)]
    if faults and not asked.several:
        raise faults[0].error
    results = [item for item in checked if not isinstance(item, _Fault)]
    if asked.as_json:
        told = [{"bundle": str(fault.bundle), "error": fault.error.to_json()} for fault in faults]
        print_json({"bundles": results, "failures": told} if asked.several else results[0])
    else:
        for result in results:
            show(result)
        for fault in faults:
            echo_lines(error_lines(fault.error), err=True)
    if faults:
        raise typer.Exit(faults[0].error.exit_code)


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
