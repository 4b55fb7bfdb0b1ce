"""`bundler serve`: a web bundle's demo in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bundler.cli.options import Json

EPILOG = """Examples:

  bundler serve dist/model-web-webgpu --open

  bundler serve dist/model-web-wasm --port 8080 --json

  bundler serve dist/model-web-wasm --no-isolation     (as on a host that sends no such headers: one thread)"""


def register(app: typer.Typer) -> None:
    """Add the command of this file to `app`."""
    app.command(name="serve", epilog=EPILOG)(serve)


def serve(
    bundle: Annotated[Path, typer.Argument(help="A web bundle's folder.")],
    *,
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65535, help="Port to serve on.", show_default="any free one")
    ] = 0,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            help=(
                "Address to serve on, in place of a name that is new at each run; any but 127.0.0.1 lets machines of "
                "the network in. With a port, too, pages of every run share what the browser keeps for that address."
            ),
            show_default="this machine alone, as NAME.localhost",
        ),
    ] = None,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the demo in the default browser.")
    ] = False,
    no_isolation: Annotated[
        bool, typer.Option("--no-isolation", help="Leave out the headers that threads need (COOP, COEP).")
    ] = False,
    json: Json = False,
) -> None:
    """Serve a web bundle's demo on this machine, with the headers that it needs, until Ctrl-C.

    Its page runs code that came with the bundle in your browser: use it on bundles whose origin you trust.
    """
    from bundler.cli.serving import run_serve  # noqa: PLC0415 - keeps --help quick
    from bundler.emitters.contract import ServeRequest  # noqa: PLC0415

    request = ServeRequest(bundle=bundle, host=host, port=port, isolated=not no_isolation)
    run_serve(request, open_browser=open_browser, as_json=json)
