"""`bundler targets methods`."""

from __future__ import annotations

from typing import Annotated

import typer

from bundler.catalogue.listing import list_methods
from bundler.cli.options import Json, complete_target
from bundler.cli.printing import echo, print_json

EPILOG = "Example:\n\n  bundler targets methods linux-x64"


def run(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="ID|PATH", help="List only the methods that this target supports.", autocompletion=complete_target
        ),
    ] = None,
    *,
    json: Json = False,
) -> None:
    """The precision methods, of one target or all. Raises `ProfileError`."""
    found = list_methods(target)
    if json:
        print_json(found)
        return
    width = max((len(row.name) for row in found), default=0)
    for row in found:
        data = "; requires --calibration" if row.needs_calibration else ""
        tried = "; tried by auto" if row.tried else ""
        echo(f"{row.name:<{width}}  {row.title}{data}{tried}")
    if found:
        echo()
        echo(f"Select one with --set precision.method={found[0].name}, or find the fastest that meets the accuracy")
        echo("gate with --set precision.method=auto.")
