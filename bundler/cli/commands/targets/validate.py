"""`bundler targets validate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from bundler.cli.options import Json, complete_target
from bundler.cli.printing import echo, print_json, printable
from bundler.model.errors import BundlerError, ProfileError
from bundler.profiles.resolve import resolve_target

EPILOG = "Example:\n\n  bundler targets validate ./my-board.toml linux-x64"


def run(
    targets: Annotated[
        list[str], typer.Argument(metavar="PATH|ID…", help="Profiles to check.", autocompletion=complete_target)
    ],
    *,
    json: Json = False,
) -> None:
    """Check each profile. Raises `ProfileError` with all problems of all of them; as JSON they are printed."""
    failures: dict[str, BundlerError] = {}
    for target in targets:
        try:
            resolve_target(target)
        except BundlerError as error:
            failures[target] = error
    if json:
        print_json([_verdict(target, failures.get(target)) for target in targets])
        raise typer.Exit(next(iter(failures.values())).exit_code if failures else 0)
    for target in targets:
        if target not in failures:
            echo(f"{printable(target)}: valid")
    _raise_all(list(failures.values()), len(targets))


def _verdict(target: str, error: BundlerError | None) -> dict[str, object]:
    problems = [] if error is None else [*(error.details or (error.message,))]
    return {"profile": target, "valid": error is None, "problems": problems}


def _raise_all(failures: Sequence[BundlerError], count: int) -> None:
    if len(failures) == 1:
        raise failures[0]
    if failures:
        details = [line for error in failures for line in (error.details or (error.message,))]
        message = f"{len(failures)} of {count} profiles are not valid"
        raise ProfileError(message, details=tuple(details), hint=failures[0].hint)
