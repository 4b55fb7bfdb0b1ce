"""`bundler targets list`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated

import typer

from bundler.catalogue.listing import Summary, filter_group, list_targets
from bundler.cli.answers import keep_answer, note_printed
from bundler.cli.options import Json
from bundler.cli.printing import echo_lines, print_json, printable

EPILOG = "Example:\n\n  bundler targets list --group snapdragon"


def run(
    *,
    group: Annotated[
        str, typer.Option("--group", metavar="TEXT", help="Only groups whose heading contains this.")
    ] = "",
    json: Json = False,
) -> None:
    """All targets of the groups that have `group` in their heading: a table on a terminal, aligned lines elsewhere.

    Raises `UsageError` when no group has it.
    """
    targets = filter_group(list_targets(), group)
    if json:
        print_json(targets)
    elif sys.stdout.isatty():
        _print_table(targets)
    else:
        echo_lines(_list_lines(targets))
    keep_answer()


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
    console = Console()
    console.print(table)
    with console.capture() as printed:
        console.print(table)
    note_printed(printed.get(), err=False)
