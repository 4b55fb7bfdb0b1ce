"""What `bundler serve` does and prints."""

from __future__ import annotations

import sys
import threading
import webbrowser
from contextlib import suppress

from bundler.api.serve import serve
from bundler.cli.printing import echo, echo_document, render_json
from bundler.emitters.contract import Served, ServeRequest


def run_serve(request: ServeRequest, *, open_browser: bool, as_json: bool) -> None:
    """Serve until the user stops it, which is the usual end and no failure."""
    with suppress(KeyboardInterrupt), serve(request, _report) as served:
        _announce(served, request, as_json=as_json)
        if open_browser:
            webbrowser.open(served.url)
        _wait()


def _wait() -> None:
    """Sleep in short pieces: some systems deliver no Ctrl-C to a thread that waits without end."""
    never = threading.Event()
    while not never.wait(timeout=3600 if sys.platform != "win32" else 0.5):
        pass


def _announce(served: Served, request: ServeRequest, *, as_json: bool) -> None:
    if as_json:
        # One line, told at once: whoever started us waits for the address, and we do not end.
        echo_document(render_json({"url": served.url, "bundle": str(served.bundle), "isolated": served.isolated}))
        sys.stdout.flush()
        return
    echo(f"{served.bundle} is served at {served.url}")
    if not served.isolated:
        echo("  without cross-origin isolation: its pages have one thread")
    if request.host is None:
        echo("  an address for this run alone; where a browser cannot find it, give --host 127.0.0.1")
    elif request.port:
        echo("  a fixed address: what pages of other runs left with the browser, this one finds")
    if request.host not in (None, "127.0.0.1", "localhost", "::1"):
        echo("  other machines can reach it; browsers there refuse threads and WebGPU to a page without HTTPS")
    echo("Ctrl-C ends it")
    sys.stdout.flush()


def _report(line: str) -> None:
    echo(f"refused: {line}", err=True)
