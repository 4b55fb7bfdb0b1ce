"""What `bundler serve` does and prints."""

from __future__ import annotations

import json
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import typer

from bundler.api.serve import serve
from bundler.cli.printing import printable
from bundler.emitters.contract import Served, ServeRequest
from bundler.model.errors import UsageError


def run_serve(request: ServeRequest, *, fixed_port: bool, open_browser: bool, as_json: bool) -> None:
    """Serve until the user stops it, which is the usual end and no failure."""
    with suppress(KeyboardInterrupt), _open(request, fixed_port=fixed_port) as served:
        _announce(served, request, as_json=as_json)
        if open_browser:
            webbrowser.open(served.url)
        _wait()


@contextmanager
def _open(request: ServeRequest, *, fixed_port: bool) -> Iterator[Served]:
    """On the port that is asked for; the default one gives way to any other when it is taken."""
    try:
        with serve(request, _report) as served:
            yield served
            return
    except UsageError as error:
        if fixed_port or not isinstance(error.__cause__, OSError):
            raise
    with serve(replace(request, port=0), _report) as served:
        yield served


def _wait() -> None:
    """Sleep in short pieces: some systems deliver no Ctrl-C to a thread that waits without end."""
    never = threading.Event()
    while not never.wait(timeout=3600 if sys.platform != "win32" else 0.5):
        pass


def _announce(served: Served, request: ServeRequest, *, as_json: bool) -> None:
    if as_json:
        # One line, told at once: whoever started us waits for the address, and we do not end.
        typer.echo(json.dumps({"url": served.url, "bundle": str(served.bundle), "isolated": served.isolated}))
        sys.stdout.flush()
        return
    typer.echo(f"{served.bundle} is served at {served.url}")
    if not served.isolated:
        typer.echo("  without cross-origin isolation: its pages have one thread")
    if request.host not in ("127.0.0.1", "localhost", "::1"):
        typer.echo("  other machines can reach it; browsers there refuse threads and WebGPU to a page without HTTPS")
    typer.echo("Ctrl-C ends it")
    sys.stdout.flush()


def _report(line: str) -> None:
    sys.stderr.write(f"refused: {printable(line)}\n")
