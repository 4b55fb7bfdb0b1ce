"""`bundler serve`."""

from __future__ import annotations

import sys
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import api
from bundler.cli.options import Json
from bundler.cli.printing import echo, echo_document, render_json

if TYPE_CHECKING:
    from bundler.api import Served, ServeRequest

DETAILS = "Its page runs code of the bundle in your browser: use it on bundles from sources that you trust."

EPILOG = """Examples:

  bundler serve dist/model-web-webgpu --open

  bundler serve dist/model-web-wasm --port 8080 --json

  bundler serve dist/model-web-wasm --no-isolation   # as on a host without these headers: one thread"""


def run(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="A web bundle's folder.")],
    *,
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65535, help="Port to serve on.", show_default="any free one")
    ] = 0,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            help=(
                "Address to serve on; any except 127.0.0.1 is reachable from the network. With a fixed --port too, "
                "runs share browser storage."
            ),
            show_default="this machine only, as NAME.localhost",
        ),
    ] = None,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the demo in the default browser.")
    ] = False,
    no_isolation: Annotated[
        bool, typer.Option("--no-isolation", help="Omit the headers that threads require (COOP, COEP).")
    ] = False,
    json: Json = False,
) -> None:
    """Serve until the user stops it, which is not a failure."""
    request = api.ServeRequest(bundle=bundle, host=host, port=port, isolated=not no_isolation)
    with suppress(KeyboardInterrupt), api.serve(request, _report) as served:
        _announce(served, request, as_json=json)
        if open_browser:
            webbrowser.open(served.url)
        _wait()


def _wait() -> None:
    """Sleep in short intervals: some systems deliver no Ctrl-C to a thread that waits indefinitely."""
    never = threading.Event()
    while not never.wait(timeout=3600 if sys.platform != "win32" else 0.5):
        pass


def _announce(served: Served, request: ServeRequest, *, as_json: bool) -> None:
    if as_json:
        # One line, flushed at once: the parent process waits for the address, and this process does not end.
        echo_document(render_json({"url": served.url, "bundle": str(served.bundle), "isolated": served.isolated}))
        sys.stdout.flush()
        return
    echo(f"{served.bundle} is served at {served.url}")
    if not served.isolated:
        echo("  without cross-origin isolation: its pages have one thread")
    if request.host is None:
        echo("  an address for this run only; if the browser cannot resolve it, use --host 127.0.0.1")
    elif request.port:
        echo("  a fixed address: runs share the browser's storage")
    if request.host not in (None, "127.0.0.1", "localhost", "::1"):
        echo("  reachable from other machines; browsers there refuse threads and WebGPU to pages without HTTPS")
    echo("Ctrl-C stops it")
    sys.stdout.flush()


def _report(line: str) -> None:
    echo(f"refused: {line}", err=True)
