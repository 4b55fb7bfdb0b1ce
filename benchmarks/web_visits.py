"""Visits of a page in a real browser: the first with an empty profile, the next with the profile that this one left."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, BrowserType, Page, sync_playwright

LIMIT_SECONDS = 240.0
SETTLING_SECONDS = 1.0
"""The browser writes its caches when it finds time to."""

RESTING_SECONDS = 0.4
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network to pretend: Mbit/s downwards, and milliseconds that an answer takes longer."""

    megabits: float
    latency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One visit: seconds from the navigation to the first inference, and what the page `reported`."""

    seconds: float
    reported: dict[str, Any]


class VisitError(Exception):
    """A page gave no answer; the text says what the browser had to say."""


@dataclass(frozen=True, kw_only=True)
class Browser:
    """Starts one executable anew for each visit."""

    kind: BrowserType
    executable: Path

    @contextmanager
    def open(self, profile: Path) -> Iterator[BrowserContext]:
        """The browser with this profile; it has shown an empty page already when a visit begins."""
        context = self.kind.launch_persistent_context(
            profile, executable_path=self.executable, headless=True, args=list(FLAGS)
        )
        try:
            context.pages[0].goto("data:text/html,<title>Empty</title>")
            time.sleep(RESTING_SECONDS)
            yield context
        finally:
            context.close()

    def visit(self, profile: Path, url: str, network: Network | None) -> Visit:
        """One visit by a new process. Raises `VisitError`."""
        with self.open(profile) as context:
            page = context.new_page()
            if network is not None:
                pretend(context, page, network)
            reported = answer(page, url)
            time.sleep(SETTLING_SECONDS)
        return Visit(seconds=reported["at"] / 1000, reported=reported)

    def time_blocks(self, urls: Sequence[str], blocks: int, seconds: float) -> list[list[float]]:
        """Seconds of a call, page by page and block by block; pages take turns. Raises `VisitError`."""
        found: list[list[float]] = [[] for _ in urls]
        with fresh_profile() as profile, self.open(profile) as context:
            pages = [context.new_page() for _ in urls]
            for page, url in zip(pages, urls, strict=True):
                answer(page, url)
            for turn in range(blocks):
                order = list(enumerate(pages))
                for place, page in order[::-1] if turn % 2 else order:
                    page.bring_to_front()
                    found[place].append(page.evaluate(BLOCK, seconds * 1000) / 1000)
        return found


BLOCK = """async (limit) => {
  await ask();
  const times = [];
  const began = performance.now();
  while (times.length < 3 || (performance.now() - began < limit && times.length < 200)) {
    const before = performance.now();
    await ask();
    times.push(performance.now() - before);
  }
  times.sort((a, b) => a - b);
  return times[times.length >> 1];
}"""


def pretend(context: BrowserContext, page: Page, network: Network) -> None:
    """Slow the page's network down; what its caches answer is as quick as ever."""
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    rate = network.megabits * 1e6 / 8
    conditions = {"offline": False, "latency": network.latency, "downloadThroughput": rate, "uploadThroughput": rate}
    session.send("Network.emulateNetworkConditions", conditions)


def answer(page: Page, url: str) -> dict[str, Any]:
    """Go there and wait for the first inference. Raises `VisitError`."""
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)[:500]))
    page.goto(url, wait_until="commit")
    limit = time.monotonic() + LIMIT_SECONDS
    while True:
        reported: dict[str, Any] | None = page.evaluate("() => globalThis.answered ?? null")
        if reported is not None:
            return reported
        if faults or time.monotonic() > limit:
            raise VisitError(f"{url}: {faults[0] if faults else 'no answer in time'}")
        page.wait_for_timeout(50)


@contextmanager
def fresh_profile() -> Iterator[Path]:
    """A profile that has seen nothing."""
    with tempfile.TemporaryDirectory(prefix="visitor-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def drive(executable: Path) -> Iterator[Browser]:
    """The browser at `executable`, driven for as long as the block runs."""
    with sync_playwright() as playwright:
        yield Browser(kind=playwright.chromium, executable=executable)
