"""Opens a page in a headless browser and receives its messages until it is done, its tab crashes, or time is over.

The page posts messages, and holds one response of the server open for as long as it lives: when its tab crashes or runs
out of memory, the system ends that connection at once, however busy the machine is. Nothing drives the browser, so any
of the family will do.
"""

from __future__ import annotations

import queue
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bundler.devices.browser.headers import render_policy, site_headers
from bundler.devices.browser.process import Adapter, RunningBrowser, start_browser
from bundler.devices.browser.serving import open_server
from bundler.devices.browser.site import Content, Site
from bundler.model.codec import parse_json

START_SECONDS: Final = 120.0
"""A browser that has not asked for its page by then is taken to hang; the first start on a busy machine took 14 s."""

_TICK = 0.5
"""How often it is looked whether the browser still runs."""

_GRACE = 2.0
"""After the connection has ended, what the page had already posted may still be on its way."""

_FRAMES: Final = {"frame-src": "'self'", "frame-ancestors": "'self'", "worker-src": "'self' blob:"}
"""Timing runs each contender in a frame of its own, and a plain session starts its threads from the runtime's address.
Nothing else is different from what a visitor's page allows."""

OnLine = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What to open: the `page`, one of the files `beside`, which are served under an address of this run's own, with
    the files at the root, and for how many seconds at most. `framed` lets the page hold frames.
    """

    page: str
    rooted: Mapping[str, Content]
    beside: Mapping[str, Content]
    seconds: float
    framed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a visit ended: `code` is 0 when the page said that it was done, None when its time was over, else 1, and
    `errors` says why; `started` is whether it ran at all.
    """

    code: int | None
    errors: str
    started: bool


def visit_page(visit: Visit, browser: Path, adapter: Adapter, on_line: OnLine) -> Ending:
    """Open the page and pass each message to `on_line`. Raises `EnvironmentMissingError` for no such program."""
    inbox: queue.Queue[bytes | None] = queue.Queue()
    # Nobody else on this machine can know the address, so nobody else can post results.
    base = f"/_bundler/{secrets.token_urlsafe(16)}/"
    with open_server(_make_site(visit, base, inbox)) as server:
        address = f"{server.url.rstrip('/')}{base}{visit.page}"
        with start_browser(browser, address, adapter) as running:
            return _await_messages(inbox, running, on_line, visit.seconds)


def _make_site(visit: Visit, base: str, inbox: queue.Queue[bytes | None]) -> Site:
    policy = render_policy(_FRAMES) if visit.framed else None
    return Site(
        files={**visit.rooted, **{f"{base}{name}": content for name, content in visit.beside.items()}},
        headers=site_headers(policy=policy),
        posts={f"{base}result": inbox.put},
        held={f"{base}alive": lambda: inbox.put(None)},
    )


def _await_messages(
    inbox: queue.Queue[bytes | None], running: RunningBrowser, on_line: OnLine, seconds: float
) -> Ending:
    began = time.monotonic()
    started = False
    while True:
        left = began + (seconds if started else min(seconds, START_SECONDS)) - time.monotonic()
        if left <= 0:
            silence = _explain_silence(running, started=started, seconds=seconds)
            return Ending(code=None, errors=silence, started=started)
        try:
            body = inbox.get(timeout=min(_TICK, left))
        except queue.Empty:
            ending = running.find_ending()
            if ending is not None:
                return Ending(code=1, errors=f"the browser did not keep running: {ending}", started=started)
            continue
        if body is None:
            return _receive_rest(inbox, on_line) or Ending(code=1, errors=_explain_crash(running), started=started)
        started = True
        if _receive(body, on_line):
            return _DONE


_DONE: Final = Ending(code=0, errors="", started=True)


def _receive(body: bytes, on_line: OnLine) -> bool:
    """Hand on one message; whether it was the last. What is no message is dropped: only our page can post."""
    text = body.decode("utf-8", "replace")
    try:
        message = parse_json(text)
    except ValueError:
        return False
    if not isinstance(message, dict):
        return False
    if message.get("kind") == "done":
        return True
    on_line(text)
    return False


def _receive_rest(inbox: queue.Queue[bytes | None], on_line: OnLine) -> Ending | None:
    """What had been posted when the connection ended: the page may have said that it was done."""
    until = time.monotonic() + _GRACE
    while time.monotonic() < until:
        try:
            body = inbox.get(timeout=0.1)
        except queue.Empty:
            continue
        if body is not None and _receive(body, on_line):
            return _DONE
    return None


def _explain_crash(running: RunningBrowser) -> str:
    return f"the tab crashed (perhaps out of memory); the browser's last output: {running.last_lines()}"


def _explain_silence(running: RunningBrowser, *, started: bool, seconds: float) -> str:
    if started:
        return f"it did not end within {seconds:.0f} s"
    limit = min(seconds, START_SECONDS)
    return f"the browser did not open the page within {limit:.0f} s; its last output: {running.last_lines()}"
