"""`bundler init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bundler.cli.options import complete_target
from bundler.cli.printing import echo, echo_document
from bundler.project.documents import describe_project_schema
from bundler.project.starter import write_starter

EPILOG = "Example:\n\n  bundler init model.onnx --target linux-x64"


def run(
    models: Annotated[
        list[Path] | None, typer.Argument(help="ONNX files [all in this folder and below].", metavar="MODEL")
    ] = None,
    *,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", "-t", help="Targets [this machine's].", autocompletion=complete_target),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing project file.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Write nothing; print the JSON Schema of project files.")
    ] = False,
) -> None:
    """Write the file, or print its schema."""
    if schema:
        echo_document(describe_project_schema())
        return
    path = write_starter(Path.cwd(), tuple(models or ()), tuple(target or ()), force=force)
    echo(f"wrote {path.name}; `bundler build` builds its bundles, `bundler lock` pins their downloads")
