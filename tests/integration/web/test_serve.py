"""`bundler serve`: the demo in a real browser, and every end that it can have."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Playwright, expect

from bundler.devices.browser.serving import open_server
from bundler.devices.browser.site import Site
from bundler.emitters.contract import ServeRequest
from bundler.emitters.web.showing import serve_demo
from tests.support import models
from tests.support.command_line import CommandLine, end_group
from tests.support.web_pages import launch, visitor

pytestmark = pytest.mark.timeout(300)


@contextmanager
def started(bundler: CommandLine, *options: str | Path) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """A running `bundler serve`, and what it prints."""
    process = bundler.start("serve", *options)
    assert process.stdout is not None
    try:
        yield process, process.stdout
    finally:
        process.terminate()  # It removes what it unpacked.
        process.wait(timeout=20)
        end_group(process)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@contextmanager
def serving(bundler: CommandLine, bundle: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running `bundler serve --json`, and the address that it reported."""
    with started(bundler, bundle, "--json", *options) as (process, printed):
        line = printed.readline()
        assert line, process.stderr.read() if process.stderr else ""
        yield process, json.loads(line)["url"]


def fetch(url: str, path: str, host: str | None = None) -> http.client.HTTPResponse:
    """As a browser asks, which knows names below `localhost` to be this machine; `host` names another one."""
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(url).port, timeout=20)
    connection.request("GET", path, headers={"Host": host or urlsplit(url).netloc})
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


@pytest.mark.quick
def test_the_demo_is_served_with_what_it_needs(bundler: CommandLine, unproven: Path) -> None:
    with serving(bundler, unproven) as (_, url):
        assert re.fullmatch(r"http://[0-9a-f]{16}\.localhost:\d+/demo/", url)
        assert fetch(url, "/").getheader("Location") == "/demo/"
        page = fetch(url, "/demo/")
        assert page.status == 200
        assert page.getheader("Cross-Origin-Embedder-Policy") == "require-corp"
        assert fetch(url, "/index.js").getheader("Content-Type") == "text/javascript; charset=utf-8"
        assert fetch(url, "/payload/runtime.json").status == 200
        assert fetch(url, "/../bundle.json/../../etc/passwd").status == 404


def test_each_run_has_an_address_of_its_own_and_answers_to_no_other(bundler: CommandLine, unproven: Path) -> None:
    with serving(bundler, unproven) as (_, first):
        port = urlsplit(first).port
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"0123456789abcdef.localhost:{port}", "evil.example"):
            assert fetch(first, "/demo/", host).status == 421
    with serving(bundler, unproven, "--port", str(port)) as (_, second):
        assert urlsplit(second).port == port
        assert urlsplit(second).hostname != urlsplit(first).hostname
        assert fetch(second, "/demo/").status == 200
        assert fetch(second, "/demo/", urlsplit(first).netloc).status == 421


def test_an_address_that_is_asked_for_is_taken_and_a_fixed_one_is_said(bundler: CommandLine, unproven: Path) -> None:
    with serving(bundler, unproven, "--host", "127.0.0.1") as (_, url):
        assert url.startswith("http://127.0.0.1:")
        assert fetch(url, "/demo/").status == 200
        port = str(urlsplit(url).port)
    with started(bundler, unproven, "--host", "127.0.0.1", "--port", port) as (_, printed):
        assert f"http://127.0.0.1:{port}/demo/" in printed.readline()
        assert "share the browser's storage" in printed.readline()


STAY = """
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(clients.claim()));
self.addEventListener("fetch", (event) => {
  const page = new Response("<title>hostile</title>", { headers: { "content-type": "text/html" } });
  event.respondWith(event.request.mode === "navigate" ? page : fetch(event.request));
});
"""

REGISTER = """async () => {
  localStorage.setItem("left", "behind");
  const stay = async () => {
    await navigator.serviceWorker.register("/sw.js", { scope: "/" });
    await navigator.serviceWorker.ready;
    return "stays";
  };
  return stay().catch((error) => `refused: ${error}`);
}"""


def test_a_hostile_bundle_leaves_nothing_for_the_next_one(
    packed: Path, unproven: Path, playwright: Playwright, tmp_path: Path
) -> None:
    """Neither a service worker that serves itself in place of the next bundle, nor what it stored."""
    hostile = Path(shutil.copytree(unproven, tmp_path / "hostile"))
    (hostile / "sw.js").write_text(STAY)
    browser = launch(playwright)
    with visitor(browser) as found:
        with serve_demo(ServeRequest(bundle=hostile), print) as served:
            found.page.goto(served.url)
            assert found.page.evaluate(REGISTER).startswith("refused")
        port = urlsplit(served.url).port or 0
        with serve_demo(ServeRequest(bundle=packed, port=port), print) as next_one:
            found.page.goto(next_one.url)
            assert found.page.title() != "hostile"
            assert found.page.evaluate("[localStorage.length, caches.keys()]")[0] == 0
            assert found.page.evaluate("navigator.serviceWorker.getRegistrations().then((all) => all.length)") == 0
    browser.close()


def test_a_service_worker_is_refused_whatever_the_page_allows(playwright: Playwright) -> None:
    heard: list[str] = []
    site = Site(files={"/index.html": b"<title>page</title>", "/sw.js": STAY.encode()}, headers={})
    browser = launch(playwright)
    with open_server(site, report=heard.append) as server, visitor(browser) as found:
        found.page.goto(server.url)
        assert found.page.evaluate(REGISTER).startswith("refused")
    browser.close()
    assert "403 GET /sw.js" in heard


def test_isolation_can_be_left_out(bundler: CommandLine, unproven: Path) -> None:
    with serving(bundler, unproven, "--no-isolation") as (_, url):
        page = fetch(url, "/demo/")
        assert page.getheader("Cross-Origin-Embedder-Policy") is None
        assert page.getheader("Content-Security-Policy")


def test_a_packed_bundle_is_served_as_well(bundler: CommandLine, packed: Path) -> None:
    with serving(bundler, packed) as (_, url):
        assert fetch(url, "/demo/").status == 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_quietly_when_it_is_reported_to(bundler: CommandLine, unproven: Path, number: signal.Signals) -> None:
    with serving(bundler, unproven) as (process, url):
        fetch(url, "/demo/")
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, "", "")


def test_an_altered_bundle_is_not_served(bundler: CommandLine, unproven: Path, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(unproven, tmp_path / "bundle"))
    with (bundle / "index.js").open("a") as stream:
        stream.write("// more\n")
    answer = bundler.run("serve", bundle, "--json").expect(8)
    assert any("index.js" in line for line in answer.document["error"]["details"])


def test_only_web_bundles_can_be_served(bundler: CommandLine, here: tuple[str, ...], tmp_path: Path) -> None:
    model = models.save(models.mlp(), tmp_path / "model")
    built = bundler.build(model, *here, "--no-prove", "--output", tmp_path / "out")
    answer = bundler.run("serve", built["bundle"], "--json").expect(2)
    assert "is a python bundle, and only web bundles can be served" in answer.document["error"]["message"]
    assert "--target web-wasm" in answer.document["error"]["hint"]


def test_what_is_no_bundle_is_said(bundler: CommandLine, tmp_path: Path) -> None:
    assert "is not a bundle" in bundler.run("serve", tmp_path).expect(8).err


def test_a_port_in_use_is_an_error_when_it_was_asked_for(bundler: CommandLine, unproven: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = bundler.run("serve", unproven, "--port", str(port)).expect(2)
    assert f"port {port} of 127.0.0.1 is in use" in answer.err
    assert "--port" in answer.err


def test_the_demo_runs_under_the_headers_that_are_sent(
    bundler: CommandLine, packed: Path, playwright: Playwright
) -> None:
    with serving(bundler, packed) as (_, url):
        browser = launch(playwright)
        with visitor(browser) as found:
            found.page.goto(url)
            expect(found.page.locator("#load .value").first).not_to_contain_text("Starting", timeout=60_000)
            assert found.page.evaluate("crossOriginIsolated")
            assert found.complaints == []
        browser.close()
