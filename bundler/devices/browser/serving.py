"""A small HTTP server on this machine for a `Site`: HTTP/1.1, threads, validators, nothing of other hosts."""

from __future__ import annotations

import errno
import os
import secrets
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from ipaddress import ip_address

from bundler.devices.browser.answering import Handler
from bundler.devices.browser.site import Site
from bundler.model.errors import UsageError

LOOPBACK = "127.0.0.1"
_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class SiteServer(ThreadingHTTPServer):
    """Answers for one site. `report` gets a line for each request that was refused. With a `name` (below `localhost`,
    which browsers know to be this machine) it serves that name alone.
    """

    daemon_threads = True
    block_on_close = False
    # Elsewhere than on POSIX this would let two servers share one port.
    allow_reuse_address = os.name == "posix"

    def __init__(self, site: Site, host: str, port: int, report: Callable[[str], None], name: str | None) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.site = site
        self.report = report
        self.host = host
        self.name = name
        # Another bundle on the same port must not pass for what a browser has kept from this one.
        self.nonce = secrets.token_hex(4)
        super().__init__((host, port), Handler)

    def server_bind(self) -> None:
        """Bind without asking the network for this machine's name, which can take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.host, self.server_address[1]

    @property
    def url(self) -> str:
        """The address of the site's root."""
        host = self.name or ("localhost" if self.host in ("0.0.0.0", "::") else self.host)  # noqa: S104 - compared, not bound to
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}/"

    def answers_to(self, host: str | None) -> bool:
        """Whether a request that names `host` is meant for us.

        A page elsewhere can make its own name point to this machine and then read what is served here; it cannot
        make the browser send another name than its own. Addresses are no names, so they are safe on any interface.
        """
        name, port = _split_host(host or "")
        if port != str(self.server_port):
            return False
        if self.name is not None:
            return name == self.name
        return name in _OWN_NAMES or name == self.host.lower() or (self.host in ("0.0.0.0", "::") and _is_address(name))  # noqa: S104

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes away in the middle of a response is no error."""
        del request, client_address
        error = sys.exception()
        if not isinstance(error, (ConnectionError, TimeoutError)):
            self.report(f"a request failed: {type(error).__name__}: {error}")


@contextmanager
def open_server(
    site: Site,
    *,
    host: str = LOOPBACK,
    name: str | None = None,
    port: int = 0,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[SiteServer]:
    """Serve `site` from a thread of its own for as long as the block runs; port 0 takes any free one.

    Raises `UsageError` when the address cannot be had.
    """
    try:
        server = SiteServer(site, host, port, report, name)
    except (OSError, OverflowError) as error:
        raise _explain(error, host, port) from error
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def _explain(error: Exception, host: str, port: int) -> UsageError:
    code = getattr(error, "errno", None)
    if code == errno.EADDRINUSE:
        return UsageError(
            f"port {port} of {host} is in use by another program", hint="use another port, or --port 0 for any free one"
        )
    if code == errno.EACCES:
        return UsageError(f"you may not use port {port}", hint="use --port with a number above 1023")
    return UsageError(
        f"cannot serve on {host}, port {port}",
        details=(str(error),),
        hint="remove --host to serve on this machine only",
    )


def _split_host(text: str) -> tuple[str, str]:
    """`[::1]:80` and `localhost:80` as name and port."""
    name, _, port = text.strip().lower().rpartition(":")
    if not name or text.endswith("]"):
        name, port = text.strip().lower(), "80"
    return name.removeprefix("[").removesuffix("]"), port


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
