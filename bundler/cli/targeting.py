"""What `bundler targets` prints."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import typer

from bundler.catalogue.listing import Summary, filter_group, list_targets
from bundler.cli.printing import echo, echo_document, echo_lines, print_json, printable
from bundler.model.errors import ProfileError


def print_list(group: str = "", *, as_json: bool) -> None:
    """All targets of the groups that have `group` in their heading: a table on a terminal, aligned lines elsewhere.

    Raises `UsageError` when no group has it.
    """
    targets = filter_group(list_targets(), group)
    if as_json:
        print_json(targets)
    elif sys.stdout.isatty():
        _print_table(targets)
    else:
        echo_lines(_list_lines(targets))


def print_profile(target: str, overrides: Sequence[str], *, as_json: bool) -> None:
    """The resolved profile, each value with its origin."""
    from bundler.catalogue.outlook import foresee_variants  # noqa: PLC0415 - needs the schema
    from bundler.catalogue.presentation import describe_profile, origins_of  # noqa: PLC0415
    from bundler.profiles.resolve import resolve_layers  # noqa: PLC0415

    resolved = resolve_layers(target, overrides)
    if not as_json:
        echo_document(describe_profile(resolved))
        return
    profile = resolved.profile.model_dump(mode="json")
    print_json(
        {
            "files": resolved.layered.files,
            "profile": profile,
            "origins": origins_of(resolved),
            "variants": foresee_variants(resolved.profile),
        }
    )


def print_validation(targets: Sequence[str], *, as_json: bool) -> None:
    """Check each profile. Raises `ProfileError` with all problems of all of them; as JSON they are printed."""
    from bundler.profiles.resolve import resolve_target  # noqa: PLC0415 - needs the schema

    failures: dict[str, ProfileError] = {}
    for target in targets:
        try:
            resolve_target(target)
        except ProfileError as error:
            failures[target] = error
    if as_json:
        print_json([_verdict(target, failures.get(target)) for target in targets])
        raise typer.Exit(ProfileError.exit_code if failures else 0)
    for target in targets:
        if target not in failures:
            echo(f"{printable(target)}: valid")
    _raise_all(list(failures.values()), len(targets))


def print_methods(target: str | None, *, as_json: bool) -> None:
    """The precision methods, of one target or all. Raises `ProfileError`."""
    from bundler.catalogue.listing import list_methods  # noqa: PLC0415 - needs the schema where a target is named

    found = list_methods(target)
    if as_json:
        print_json(found)
        return
    width = max((len(row.name) for row in found), default=0)
    for row in found:
        data = "; needs --calibration" if row.needs_calibration else ""
        tried = "; tried by auto" if row.tried else ""
        echo(f"{row.name:<{width}}  {row.title}{data}{tried}")
    if found:
        echo()
        echo(f"Take one with --set precision.method={found[0].name}, or find the fastest that holds the accuracy")
        echo("gate with --set precision.method=auto.")


def print_schema() -> None:
    """The JSON Schema of a profile."""
    from bundler.catalogue.documents import describe_schema  # noqa: PLC0415 - needs the schema

    echo_document(describe_schema())


def write_new(target: str, extends: str, output: Path | None) -> None:
    """Write a starting profile and say what to do with it."""
    from bundler.catalogue.starter import write_starter  # noqa: PLC0415 - needs the schema

    path = write_starter(target, extends, output or Path(f"{target}.toml"))
    echo(f"wrote {path}")
    echo(f"build for it with --target ./{path}" if not path.is_absolute() else f"build for it with --target {path}")


def _verdict(target: str, error: ProfileError | None) -> dict[str, object]:
    problems = [] if error is None else [*(error.details or (error.message,))]
    return {"profile": target, "valid": error is None, "problems": problems}


def _raise_all(failures: Sequence[ProfileError], count: int) -> None:
    if len(failures) == 1:
        raise failures[0]
    if failures:
        details = [line for error in failures for line in (error.details or (error.message,))]
        message = f"{len(failures)} of {count} profiles are not valid"
        raise ProfileError(message, details=tuple(details), hint=failures[0].hint)


def _list_lines(targets: Sequence[Summary]) -> Iterator[str]:
    width = max((len(target.id) for target in targets), default=0)
    for group, members in groupby(targets, key=lambda target: target.group):
        yield printable(group) + ":"
        for target in members:
            yield f"  {target.id:<{width}}  {printable(target.problem or target.title)}"


def _print_table(targets: Sequence[Summary]) -> None:
    from rich.console import Console  # noqa: PLC0415 - only for a terminal
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("Target", "Runs on", "System", "Providers"):
        table.add_column(head, no_wrap=head == "Target")
    for group, members in groupby(targets, key=lambda target: target.group):
        table.add_row(Text(printable(group), style="bold cyan"))
        for target in members:
            system = f"{target.system} {target.architecture}".strip()
            cells = (f"  {target.id}", target.problem or target.title, system, " → ".join(target.providers))
            # As Text, because a profile's words are no markup.
            table.add_row(*(Text(printable(cell)) for cell in cells))
    Console().print(table)
