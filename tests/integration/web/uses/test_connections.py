"""Nothing leaves a page that runs a bundle: no telemetry, no other host. A policy would only block what the runtime
sends; the pages here have none.
"""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import Browser

from tests.support.web_host import Host, host
from tests.support.web_pages import IN_WORKER, WORKER, visitor

RUN = """
  const model = await load({ threads: 2, variant: given });
  const passed = (await model.selfTest()).passed;
  await model.dispose();
  return passed;
"""

ELSEWHERE = """
  const inThread = `fetch("http://thread.example/").catch(() => 0).then(() => postMessage(0))`;
  const thread = new Worker(URL.createObjectURL(new Blob([inThread])));
  await new Promise((resolve) => (thread.onmessage = resolve));
  navigator.sendBeacon("http://beacon.example/", "reported");
  await fetch("https://page.example/").catch(() => 0);
"""

QUIET = 1500
"""Milliseconds for what is sent when all seems done."""


@dataclass
class Proxy:
    """Notes which hosts are asked for, and lets nothing through."""

    address: str = ""
    asked: list[str] = field(default_factory=list)


class _Refusal(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        """`GET http://name/ HTTP/1.1` or `CONNECT name:443 HTTP/1.1`."""
        words = self.rfile.readline(10_000).decode("latin-1").split()
        cast("_Server", self.server).proxy.asked.append(words[1] if len(words) > 1 else "?")
        self.wfile.write(b"HTTP/1.1 502 no\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    proxy: Proxy


@contextmanager
def proxy() -> Iterator[Proxy]:
    server = _Server(("127.0.0.1", 0), _Refusal)
    server.proxy = Proxy(address=f"http://127.0.0.1:{server.server_address[1]}")
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server.proxy
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("kind", "variant"), [("wasm_bundle", "wasm"), ("webgpu_bundle", "webgpu")], ids=["wasm", "webgpu"]
)
def test_nothing_is_asked_of_any_other_host(
    browser: Browser, request: pytest.FixtureRequest, kind: str, variant: str
) -> None:
    bundle: Path = request.getfixturevalue(kind)
    requested: list[str] = []
    with host(bundle) as site, proxy() as outside, visitor(browser, proxy=around(outside)) as found:
        site.headers = {name: text for name, text in site.headers.items() if name != "Content-Security-Policy"}
        site.pages["/worker.js"] = WORKER
        found.page.on("request", lambda asked: requested.append(asked.url))
        assert found.visit(site).value(RUN, variant) is True
        assert found.value(IN_WORKER) == [True, 2]
        found.page.wait_for_timeout(QUIET)
        assert outside.asked == []
        assert [url for url in requested if not is_own(url, site)] == []
        assert any(url.endswith("/index.js") for url in requested)
        # What is sent elsewhere is noticed here, wherever it comes from.
        found.value(ELSEWHERE)
        found.page.wait_for_timeout(QUIET)
        names = {"thread.example", "beacon.example", "page.example"}
        assert {name for name in names for asked in outside.asked if name in asked} == names


def around(outside: Proxy) -> dict[str, str]:
    """All but the page's own host is asked for through the proxy."""
    return {"server": outside.address, "bypass": "127.0.0.1"}


def is_own(url: str, site: Host) -> bool:
    """Whether an address is the page's own, or of what it has in memory."""
    return url.startswith((f"{site.url}/", f"blob:{site.url}/", "data:"))
