"""`bundler diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bundler import api
from bundler.cli.options import Json
from bundler.cli.printing import echo_lines, print_json
from bundler.reporting.diff import render_diff

EPILOG = "Example:\n\n  bundler diff old/model-linux-x64 dist/model-linux-x64"


def run(
    first: Annotated[Path, typer.Argument(help="A bundle's folder.", metavar="A")],
    second: Annotated[Path, typer.Argument(help="Another bundle's folder.", metavar="B")],
    *,
    json: Json = False,
) -> None:
    """Compare two bundles and print the differences."""
    difference = api.compare(first, second)
    if json:
        print_json(difference)
    else:
        echo_lines(render_diff(difference).rstrip("\n").split("\n"))
