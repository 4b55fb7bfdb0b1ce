"""`bundler targets new`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bundler.catalogue.starter import write_starter
from bundler.cli.printing import echo

EPILOG = "Example:\n\n  bundler targets new my-board --extends raspberry-pi-5 -o boards/my-board.toml"


def run(
    target: Annotated[str, typer.Argument(metavar="ID", help="The new target's name: lower case, digits, hyphens.")],
    *,
    extends: Annotated[str, typer.Option("--extends", metavar="BASE", help="A target, a base, or a profile's path.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write it.", show_default="ID.toml")
    ] = None,
) -> None:
    """Write a starter profile and print how to build for it."""
    path = write_starter(target, extends, output or Path(f"{target}.toml"))
    echo(f"wrote {path}")
    echo(f"build for it with --target ./{path}" if not path.is_absolute() else f"build for it with --target {path}")
