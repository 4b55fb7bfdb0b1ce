"""A web host for a bundle: sends the documented headers, counts what is asked for, and can be made to fail.

It is not the server of `bundler serve`: a bundle must work on any.
"""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from bundler.devices.browser.headers import content_type, site_headers
from bundler.devices.browser.site import list_folder

VISIT = "/visit.html"
"""An empty page, which every host has."""

HEAD = '<!doctype html><meta charset="utf-8"><title>visit</title><link rel="icon" href="data:,">'
"""What a page begins with; the browser asks for no icon."""

Fault = Callable[["_Handler", bytes], None]
"""Answers one request in place of the host, given the file that was asked for."""


@dataclass
class Host:
    """A folder of files at an address, and further `pages` by path. `faults` answer for paths; `asked` are the paths
    that were asked for, in order; `sent` counts what went out beyond the end of a file.

    Code may be kept by the browser for an hour (`keep_code`), everything else never: what a second visit does not ask
    for came from where the loader put it.
    """

    folder: Path
    headers: Mapping[str, str]
    keep_code: bool = True
    pages: dict[str, str] = field(default_factory=lambda: {VISIT: HEAD})
    faults: dict[str, Fault] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    sent: int = 0
    url: str = ""

    @property
    def data_asked(self) -> Counter[str]:
        """How often each file that is no code was asked for."""
        return Counter(path for path in self.asked if not path.endswith((".js", ".mjs", ".html", ".css")))


@contextmanager
def host(folder: Path, *, isolated: bool = True, keep_code: bool = True) -> Iterator[Host]:
    """Serve `folder` with the documented headers, cross-origin isolated or not."""
    site = Host(folder=folder, headers=site_headers(isolated=isolated), keep_code=keep_code)
    server = _Server(("127.0.0.1", 0), _Handler)
    server.site = site
    site.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield site
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()


def allow_own_workers(site: Host) -> None:
    """A page that starts workers of its own says so in its policy, as a bundle's README has it."""
    policy = site.headers["Content-Security-Policy"].replace("worker-src blob:", "worker-src 'self' blob:")
    site.headers = {**site.headers, "Content-Security-Policy": policy}


def flipped(handler: _Handler, content: bytes) -> None:
    """One bit of one byte in the middle is another."""
    at = len(content) // 2
    handler.answer(200, content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])


def truncated(handler: _Handler, content: bytes) -> None:
    """The file on the server lacks its last byte."""
    handler.answer(200, content[:-1])


def lengthened(handler: _Handler, content: bytes) -> None:
    """The file on the server has one byte more."""
    handler.answer(200, content + b"\0")


def cut_off(handler: _Handler, content: bytes) -> None:
    """The connection breaks in the middle of the file."""
    handler.start(200, len(content), {})
    handler.wfile.write(content[: len(content) // 2])
    handler.close_connection = True


def missing(handler: _Handler, content: bytes) -> None:
    """The file was not deployed."""
    del content
    handler.answer(404, b"not found", {"Content-Type": "text/plain"})


def failing(handler: _Handler, content: bytes) -> None:
    """The server is in trouble."""
    del content
    handler.answer(503, b"later", {"Content-Type": "text/plain"})


def page_instead(handler: _Handler, content: bytes) -> None:
    """The host answers with its start page for whatever it does not know."""
    del content
    handler.answer(200, b"<!doctype html><title>app</title>", {"Content-Type": "text/html"})


def dropped(handler: _Handler, content: bytes) -> None:
    """The connection ends without an answer."""
    del content
    handler.close_connection = True


def silent(handler: _Handler, content: bytes) -> None:
    """The connection stands, and nothing comes."""
    del content
    handler.server.closing.wait(60)
    handler.close_connection = True


def stalled(handler: _Handler, content: bytes) -> None:
    """Half of the file comes, and then nothing more."""
    handler.start(200, len(content), {})
    handler.wfile.write(content[: len(content) // 2])
    handler.wfile.flush()
    handler.server.closing.wait(60)
    handler.close_connection = True


ENDLESS = 256 << 20
"""Bytes that stand for those without an end."""


def endless(handler: _Handler, content: bytes) -> None:
    """The true file and then zeros, of an announced length that nobody has memory for."""
    handler.start(200, 1 << 50, {})
    handler.wfile.write(content)
    block = bytes(1 << 20)
    for _ in range(ENDLESS // len(block)):
        handler.wfile.write(block)
        handler.server.site.sent += len(block)
    handler.close_connection = True


def inflated(handler: _Handler, content: bytes) -> None:
    """Some kilobytes that the browser unpacks to the true file and far more."""
    handler.answer(200, gzip.compress(content + bytes(16 << 20), 1), {"Content-Encoding": "gzip"})


def partial(handler: _Handler, content: bytes) -> None:
    """A part of the file, though nobody asked for one."""
    last = len(content) - 2
    handler.answer(206, content[: last + 1], {"Content-Range": f"bytes 0-{last}/{len(content)}"})


def unmodified(handler: _Handler, content: bytes) -> None:
    """The browser is said to have the file already."""
    del content
    handler.answer(304, b"")


def foreign(handler: _Handler, content: bytes) -> None:
    """The file is said to be at another host, which the page's policy forbids."""
    del content
    handler.answer(302, b"", {"Location": "http://elsewhere.example/file"})


def circling(handler: _Handler, content: bytes) -> None:
    """The file is said to be where it was asked for."""
    del content
    handler.answer(307, b"", {"Location": handler.path})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    site: Host

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.closing = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes away in the middle of an answer is no fault."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        site, path = self.server.site, unquote(urlsplit(self.path).path)
        site.asked.append(path)
        content = self._read(path)
        if content is None:
            self.answer(404, b"not found", {"Content-Type": "text/plain"})
        else:
            site.faults.get(path, _Handler._answer_whole)(self, content)

    def do_HEAD(self) -> None:
        """As hosts that know no such question, but for a fault of `HEAD` and the path."""
        fault = self.server.site.faults.get(f"HEAD {unquote(urlsplit(self.path).path)}")
        if fault is None:
            self.send_error(501)
        else:
            fault(self, b"")

    def _answer_whole(self, content: bytes) -> None:
        self.answer(200, content)

    def _read(self, path: str) -> bytes | None:
        site = self.server.site
        if path in site.pages:
            return site.pages[path].encode()
        # Listed at each request: a test may deploy another version in between.
        content = list_folder(site.folder).get(path)
        return content.read_bytes() if isinstance(content, Path) else content

    def answer(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.start(status, len(content), headers or {})
        self.wfile.write(content)

    def start(self, status: int, length: int, headers: Mapping[str, str]) -> None:
        site, path = self.server.site, urlsplit(self.path).path
        code = path.endswith((".js", ".mjs", ".html"))
        caching = "max-age=3600" if code and site.keep_code else "no-cache" if code else "no-store"
        usual = {"Content-Type": content_type(path), "Cache-Control": caching, "Content-Length": str(length)}
        self.send_response(status)
        for name, value in {**site.headers, **usual, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
