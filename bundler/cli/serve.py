"""`bundler serve`: a web bundle's demo in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bundler.cli.options import Json

EPILOG = """Examples:

  bundler serve dist/model-web-webgpu --open

  bundler serve dist/model-web-wasm --port 0 --json

  bundler serve dist/model-web-wasm --no-isolation     (as on a host that sends no such headers: one thread)"""

DEFAULT_PORT = 8737


def register(app: typer.Typer) -> None:
    """Add the command of this file to `app`."""
    app.command(name="serve", epilog=EPILOG)(serve)


def serve(
    bundle: Annotated[Path, typer.Argument(help="A web bundle's folder.")],
    *,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            "-p",
            min=0,
            max=65535,
            help="Port to serve on; 0 takes any free one.",
            show_default=f"{DEFAULT_PORT}, or any free one when that is taken",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Address to serve on; any other lets machines of the network in.")
    ] = "127.0.0.1",
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

    request = ServeRequest(
        bundle=bundle, host=host, port=DEFAULT_PORT if port is None else port, isolated=not no_isolation
    )
    run_serve(request, fixed_port=port is not None, open_browser=open_browser, as_json=json)
