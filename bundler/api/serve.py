"""`serve`: the demo of a web bundle, from this machine, with the headers that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bundler.emitters.web.headers import site_headers
from bundler.emitters.web.package import open_package
from bundler.emitters.web.serving import LOOPBACK, open_server
from bundler.emitters.web.site import Site, list_folder
from bundler.model.errors import UsageError
from bundler.reporting.manifest import read_manifest
from bundler.verification.integrity import require_integrity

ECOSYSTEM = "web"
DEMO = "/demo/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A bundle that is being served: `url` is its demo's address, `isolated` whether its pages may use threads."""

    url: str
    bundle: Path
    isolated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeRequest:
    """Where to serve `bundle`. Port 0 takes any free one; without `isolated` the headers for threads are left out."""

    bundle: Path
    host: str = LOOPBACK
    port: int = 0
    isolated: bool = True


@contextmanager
def serve(request: ServeRequest, report: Callable[[str], None] = lambda _: None) -> Iterator[Served]:
    """Serve the package and its demo for as long as the block runs; `report` hears of requests that were refused.

    Raises `VerificationError` when a file is not as it was built, `UsageError` for a bundle that no browser opens and
    for an address that cannot be had.
    """
    _require_web(request.bundle)
    require_integrity(request.bundle)
    with open_package(request.bundle) as package:
        site = Site(
            files=list_folder(package.root),
            headers=site_headers(isolated=request.isolated),
            redirects={"/": DEMO, DEMO.rstrip("/"): DEMO},
        )
        with open_server(site, host=request.host, port=request.port, report=report) as server:
            yield Served(url=f"{server.url.rstrip('/')}{DEMO}", bundle=request.bundle, isolated=request.isolated)


def _require_web(bundle: Path) -> None:
    manifest = read_manifest(bundle)
    if manifest.ecosystem != ECOSYSTEM:
        raise UsageError(
            f"{bundle} is a {manifest.ecosystem} bundle, and only web bundles can be served",
            hint="build one with --target web-wasm, web-webgpu or web-webnn; `bundler verify` runs this one",
        )
