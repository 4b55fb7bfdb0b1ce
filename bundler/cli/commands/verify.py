"""`bundler verify`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from bundler import api
from bundler.api import Settings
from bundler.cli.console import open_console
from bundler.cli.failures import error_lines
from bundler.cli.options import Json, Only, OptionsOf, Progress, Strict
from bundler.cli.printing import echo, echo_lines, echo_row, echo_rows, print_json, printable
from bundler.cli.strict import find_unverified, require_verified
from bundler.model.errors import BundlerError, UsageError
from bundler.model.options import On
from bundler.verification.words import BUILDING_HOST, describe_verification, same_levels

if TYPE_CHECKING:
    from bundler.api import DigestResult, VerifyResult

Result = TypeVar("Result")

DETAILS = "It runs code of the bundle: use it on bundles from sources that you trust, or with --digests-only."

EPILOG = """Examples:

  bundler verify dist/model-linux-x64 --json

  bundler verify dist/model-linux-x64 --digests-only   # runs nothing of the bundle

  bundler verify model-linux-x64 --digest 0f4b…   # must be the bundle whose build printed this digest

  bundler verify dist/model-web-webgpu --on browser:/usr/bin/chromium

  bundler verify --only 'raspberry-*'   # bundles of bundler.toml"""


def run(
    bundle: Annotated[
        Path | None,
        typer.Argument(metavar="BUNDLE", help="A bundle's folder; without one, the bundles of the project file."),
    ] = None,
    *,
    only: Only = None,
    digest: Annotated[
        str | None, typer.Option("--digest", metavar="SHA256", help="Expected SHA-256 of its bundle.json.")
    ] = None,
    digests_only: Annotated[
        bool, typer.Option("--digests-only", help="Check the digests only; run nothing of the bundle.")
    ] = False,
    on: On = None,
    settings: Annotated[Settings, OptionsOf(Settings, without=("cache_readonly", "jobs"))],
    json: Json = False,
    progress: Progress = "auto",
    strict: Strict = False,
) -> None:
    """Verify the bundle, or each of the project's, and print the level of proof."""
    bundles = (bundle,) if bundle else _find_project_bundles(only or (), digest)
    if bundle and only:
        raise UsageError(
            "--only cannot be used with a bundle: it selects from the project file", hint="remove the bundle or --only"
        )
    if digests_only and on:
        raise UsageError(
            "--digests-only cannot be used with --on: it runs nothing", hint="remove one of the two options"
        )
    if digests_only and strict:
        raise UsageError(
            "--digests-only cannot be used with --strict: it verifies no variant", hint="remove one of the two options"
        )
    if digests_only:
        checked = _check_each(bundles, lambda path: api.check_digests(path, digest))
        asked = digest is not None
        _show_each(checked, lambda result: _print_digests(result, asked=asked), several=bundle is None, as_json=json)
        return
    pinned = {} if bundle else api.find_project_pins()
    with open_console(progress, as_json=json) as listener:
        verified = _check_each(
            bundles,
            lambda path: api.verify(path, digest=digest, on=on, pinned=pinned, settings=settings, listener=listener),
        )
    _show_each(verified, _print_verified, several=bundle is None, as_json=json)
    if strict:
        require_verified({item.bundle: _find_unverified(item) for item in verified if not isinstance(item, _Fault)})


def _find_unverified(result: VerifyResult) -> Mapping[str, str]:
    levels = {result.label(variant): variant.level for variant in result.variants}
    return find_unverified(levels, {result.label(variant): variant.reason for variant in result.variants})


def _find_project_bundles(only: Sequence[str], digest: str | None) -> tuple[Path, ...]:
    if digest is not None:
        raise UsageError("--digest requires a bundle, and none was given", hint="use bundler verify BUNDLE --digest …")
    return api.find_project_bundles(only)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fault:
    """A bundle that failed verification."""

    bundle: Path
    error: BundlerError


def _check_each(bundles: tuple[Path, ...], check: Callable[[Path], Result]) -> list[Result | _Fault]:
    """The result of each; a failure does not stop the others."""

    def attempt(bundle: Path) -> Result | _Fault:
        try:
            return check(bundle)
        except BundlerError as error:
            return _Fault(bundle=bundle, error=error)

    return [attempt(bundle) for bundle in bundles]


def _show_each(checked: list[Result | _Fault], show: Callable[[Result], None], *, several: bool, as_json: bool) -> None:
    """Print the results, of `several` bundles side by side; exits with the code of the first failure."""
    faults = [item for item in checked if isinstance(item, _Fault)]
    if faults and not several:
        raise faults[0].error
    results = [item for item in checked if not isinstance(item, _Fault)]
    if as_json:
        failures = [{"bundle": str(fault.bundle), "error": fault.error.to_json()} for fault in faults]
        print_json({"bundles": results, "failures": failures} if several else results[0])
    else:
        for result in results:
            show(result)
        for fault in faults:
            echo_lines(error_lines(fault.error), err=True)
    if faults:
        raise typer.Exit(faults[0].error.exit_code)


def _print_digests(checked: DigestResult, *, asked: bool) -> None:
    _print_files(checked)
    echo_row("Digest", f"{checked.digest} (SHA-256 of bundle.json{', matches --digest' if asked else ''})")
    echo_row("Not run", "--digests-only checks the checksums only")


def _print_files(result: DigestResult | VerifyResult) -> None:
    echo(f"{result.bundle}: {result.files} files match their checksums")
    if result.removed:
        echo(f"removed {result.removed} .pyc files, which Python writes when a bundle is run in place")


def _print_verified(result: VerifyResult) -> None:
    _print_files(result)
    for reason in result.reservations:
        echo(f"  NOT FOR SHIPPING: {reason}")
    echo_rows((*(describe_verification(result.reached) if result.reached else ()), *result.samples))
    for variant in result.variants:
        if variant.passed and variant.reason:
            echo_row("Details", f"{result.label(variant)}: {variant.reason}")
    for text in result.left_out:
        echo_row("Left out", text)
    for text in result.shortfalls:
        echo_row("Placement", text)
    for name in result.unstable_outputs:
        echo_row("Random", f"output {printable(name, 80)}: only its name, type and shape are verified")
    if result.reached and result.built and not same_levels(result.built.variants, result.reached.variants):
        echo("  When it was built:")
        echo_rows(describe_verification(result.built, BUILDING_HOST))
