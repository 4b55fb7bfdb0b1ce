"""`bundler init` and `bundler lock`: the project file and the lock beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bundler.cli.options import Cache, Json
from bundler.cli.printing import echo, echo_document


def register(app: typer.Typer) -> None:
    """Add the commands of this file to `app`."""
    app.command(name="init", epilog="Example:\n\n  bundler init model.onnx --target linux-x64")(init)
    app.command(name="lock", epilog="Example:\n\n  bundler lock --upgrade")(lock)


def init(
    models: Annotated[
        list[Path] | None, typer.Argument(help="ONNX files [all below this folder].", metavar="MODEL")
    ] = None,
    *,
    target: Annotated[list[str] | None, typer.Option("--target", "-t", help="Targets [this machine's].")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a project file that is there.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Write nothing; print the JSON Schema of project files.")
    ] = False,
) -> None:
    """Write a project file, so that `bundler build` alone builds everything (docs/project.md has all its keys)."""
    if schema:
        from bundler.project.documents import describe_project_schema  # noqa: PLC0415 - keeps --help quick

        echo_document(describe_project_schema())
        return
    from bundler.project.starter import write_starter  # noqa: PLC0415 - keeps --help quick

    path = write_starter(Path.cwd(), tuple(models or ()), tuple(target or ()), force=force)
    echo(f"wrote {path.name}; `bundler build` builds what it names, `bundler lock` pins what it downloads")


def lock(
    *,
    upgrade: Annotated[bool, typer.Option("--upgrade", help="Resolve everything anew.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when the lock is out of date.")] = False,
    cache: Cache = None,
    json: Json = False,
) -> None:
    """Pin every version and digest that builds of this project download, in bundler.lock."""
    from bundler.cli.locking import run_lock  # noqa: PLC0415 - keeps --help quick

    run_lock(upgrade=upgrade, check=check, cache=cache, as_json=json)
