"""`bundler doctor`."""

from __future__ import annotations

from bundler import api
from bundler.cli.options import CacheOnly, Json
from bundler.cli.printing import echo, print_json
from bundler.model.errors import EnvironmentMissingError

EPILOG = "Example:\n\n  bundler doctor --json"


def run(*, settings: CacheOnly, json: Json = False) -> None:
    """Print the tools; exits with the code of a missing environment when a required one is not installed."""
    found = api.examine(settings)
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
        raise EnvironmentMissingError(f"missing: {', '.join(missing)}", hint="the lines above say how to install them")
