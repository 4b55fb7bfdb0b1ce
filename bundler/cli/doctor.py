"""`bundler doctor`: what is here, and how to get the rest."""

from __future__ import annotations

import typer

from bundler.cli.options import Cache, Json
from bundler.cli.printing import echo, print_json


def register(app: typer.Typer) -> None:
    """Add the command of this file to `app`."""
    app.command(name="doctor", epilog="Example:\n\n  bundler doctor --json")(doctor)


def doctor(*, cache: Cache = None, json: Json = False) -> None:
    """Show which tools and environments are here, and how to get the rest."""
    from bundler.api.doctor import examine  # noqa: PLC0415 - keeps --help quick
    from bundler.execution.cache import open_cache  # noqa: PLC0415
    from bundler.model.errors import EnvironmentMissingError  # noqa: PLC0415

    found = examine(open_cache(cache).root)
    if json:
        print_json({"tools": found})
    else:
        for tool in found:
            mark = "ok  " if tool.found else ("MISS" if tool.required else "-   ")
            echo(f"{mark} {tool.name} {tool.version or ''}".rstrip())
            echo(f"       {tool.detail}")
            if tool.hint:
                echo(f"       {tool.hint}")
    missing = [tool.name for tool in found if tool.required and not tool.found]
    if missing:
        raise EnvironmentMissingError(f"missing: {', '.join(missing)}", hint="the lines above say how to get them")
