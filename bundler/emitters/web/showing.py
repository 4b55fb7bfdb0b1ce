"""The demo of a web bundle, served from this machine."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bundler.devices.browser.headers import site_headers
from bundler.devices.browser.serving import LOOPBACK, open_server
from bundler.devices.browser.site import Site, list_folder
from bundler.emitters.contract import Served, ServeRequest
from bundler.emitters.web.demo import DEMO
from bundler.emitters.web.package import open_package

_PAGE = f"/{DEMO}/"


@contextmanager
def serve_demo(request: ServeRequest, report: Callable[[str], None]) -> Iterator[Served]:
    """Serve the package and its demo for as long as the block runs. Raises `UsageError`, `VerificationError`.

    Browsers keep what a page stores, and the service worker that it leaves behind, by the address of its server. So
    each run has an address that no run had before, unless the host is given.
    """
    name = None if request.host else f"{secrets.token_hex(8)}.localhost"
    with open_package(request.bundle) as package:
        site = Site(
            files=list_folder(package.root),
            headers=site_headers(isolated=request.isolated),
            redirects={"/": _PAGE, _PAGE.rstrip("/"): _PAGE},
        )
        with open_server(site, host=request.host or LOOPBACK, name=name, port=request.port, report=report) as server:
            yield Served(url=f"{server.url.rstrip('/')}{_PAGE}", bundle=request.bundle, isolated=request.isolated)
