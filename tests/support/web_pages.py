"""A page of a bundle in the machine's own browser: what a visitor sees, and what their browser complains of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright

from tests.support.browser import provide_browser
from tests.support.web_host import VISIT, Host

INSECURE = "bundle.example"
"""A name of this machine that is neither local nor https for the browser."""

QUIET = (
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    f"--host-resolver-rules=MAP {INSECURE} 127.0.0.1",
)
SOFTWARE_WEBGPU = ("--disable-gpu", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")

WORKER = """
import { load } from "/index.js";

const answer = async () => {
  const model = await load({ threads: 2 });
  return [(await model.selfTest()).passed, model.report.threads];
};
postMessage(await answer().catch(String));
"""
"""A page's own worker, at `/worker.js`, that loads the bundle with threads and tests it."""

IN_WORKER = """
  const worker = new Worker("/worker.js", { type: "module" });
  return new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => resolve(message ?? "the worker did not start");
  });
"""
"""What it answers: whether the test passed, and how many threads there were."""

_ATTEMPT = """async (given) => {
  const bundle = await import("/index.js");
  const { load, probe, clearCache } = bundle;
  const explain = (error) => ({
    name: error.name, message: error.message, why: error.why, hint: error.hint,
    typed: error instanceof bundle.BundleError,
  });
  try {
    return { value: await (async () => { %s })() };
  } catch (error) {
    return { error: explain(error) };
  }
}"""

_CACHED = """async () => {
  const hex = (sum) => Array.from(new Uint8Array(sum), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const found = [];
  for (const name of await caches.keys()) {
    const cache = await caches.open(name);
    for (const request of await cache.keys()) {
      const bytes = await (await cache.match(request)).arrayBuffer();
      found.push({ cache: name, url: request.url, sha256: hex(await crypto.subtle.digest("SHA-256", bytes)) });
    }
  }
  return found;
}"""


def launch(playwright: Playwright, *flags: str) -> Browser:
    """The machine's browser; skips the test when there is none. Playwright's own is never downloaded."""
    browser = provide_browser()
    if isinstance(browser, str):
        pytest.skip(browser)
    return playwright.chromium.launch(executable_path=str(browser), args=[*QUIET, *flags])


@dataclass
class Visitor:
    """One visitor with a profile of their own: what they see, and all that their browser complains of."""

    context: BrowserContext
    page: Page
    complaints: list[str] = field(default_factory=list)

    def visit(self, site: Host, path: str = VISIT) -> Visitor:
        """Open a page of the host."""
        self.page.goto(site.url + path)
        return self

    def attempt(self, body: str, given: Any = None) -> dict[str, Any]:
        """What `body` (JavaScript; `load`, `probe`, `clearCache`, `bundle`, `given` are there) answers: `value` or
        `error`.
        """
        found: dict[str, Any] = self.page.evaluate(_ATTEMPT % body, given)
        return found

    def value(self, body: str, given: Any = None) -> Any:
        """The value that `body` answers; the test fails with the error otherwise."""
        found = self.attempt(body, given)
        assert "error" not in found, found["error"]
        return found.get("value")

    def error(self, body: str, given: Any = None) -> dict[str, Any]:
        """The error that `body` raises: one of the package's own, whole."""
        found = self.attempt(body, given)
        assert "error" in found, found
        error: dict[str, Any] = found["error"]
        assert error["typed"], error
        assert error["message"], error
        assert isinstance(error["why"], str), error
        assert error["hint"], error
        return error

    def cached(self) -> list[dict[str, Any]]:
        """Every entry of every cache of the page's origin, with the digest of what it holds."""
        found: list[dict[str, Any]] = self.page.evaluate(_CACHED)
        return found


@contextmanager
def visitor(browser: Browser, **options: Any) -> Iterator[Visitor]:
    """A visitor who comes for the first time."""
    context = browser.new_context(**options)
    try:
        found = Visitor(context, context.new_page())
        listen(found)
        yield found
    finally:
        context.close()


def listen(found: Visitor) -> None:
    """Write down what the browser complains of: errors, warnings, dialogs, refused content."""
    page, said = found.page, found.complaints
    page.on("console", lambda line: line.type in ("error", "warning") and said.append(f"{line.type}: {line.text}"))
    page.on("pageerror", lambda error: said.append(f"uncaught: {error}"))
    page.on("dialog", lambda dialog: (said.append(f"dialog: {dialog.message}"), dialog.dismiss()))


def digests(folder: Path) -> set[str]:
    """SHA-256 of every file of a bundle: all that may ever stand in a visitor's cache."""
    return {hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}
