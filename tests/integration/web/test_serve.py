"""`bundler serve`: the demo in a real browser, and every end that it can have."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Playwright, expect

from tests.support import models
from tests.support.command_line import CommandLine, end_group
from tests.support.web_pages import launch, visitor

pytestmark = pytest.mark.timeout(300)


@contextmanager
def serving(bundler: CommandLine, bundle: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running `bundler serve --json`, and the address that it told."""
    process = bundler.start("serve", bundle, "--port", "0", "--json", *options)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.stderr.read() if process.stderr else ""
        yield process, json.loads(line)["url"]
    finally:
        process.terminate()  # It removes what it unpacked.
        process.wait(timeout=20)
        end_group(process)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def fetch(url: str, path: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


def test_the_demo_is_served_with_what_it_needs(bundler: CommandLine, unproven: Path) -> None:
    with serving(bundler, unproven) as (_, url):
        assert url.startswith("http://127.0.0.1:")
        assert url.endswith("/demo/")
        assert fetch(url, "/").getheader("Location") == "/demo/"
        page = fetch(url, "/demo/")
        assert page.status == 200
        assert page.getheader("Cross-Origin-Embedder-Policy") == "require-corp"
        assert fetch(url, "/index.js").getheader("Content-Type") == "text/javascript; charset=utf-8"
        assert fetch(url, "/payload/runtime.json").status == 200
        assert fetch(url, "/../bundle.json/../../etc/passwd").status == 404


def test_isolation_can_be_left_out(bundler: CommandLine, unproven: Path) -> None:
    with serving(bundler, unproven, "--no-isolation") as (_, url):
        page = fetch(url, "/demo/")
        assert page.getheader("Cross-Origin-Embedder-Policy") is None
        assert page.getheader("Content-Security-Policy")


def test_a_packed_bundle_is_served_as_well(bundler: CommandLine, packed: Path) -> None:
    with serving(bundler, packed) as (_, url):
        assert fetch(url, "/demo/").status == 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_quietly_when_it_is_told_to(bundler: CommandLine, unproven: Path, number: signal.Signals) -> None:
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
    assert "is no bundle" in bundler.run("serve", tmp_path).expect(8).err


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
