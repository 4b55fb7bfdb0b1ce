"""One connection of the server: request and response."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from bundler.devices.browser.headers import content_type
from bundler.devices.browser.site import Content, Site, decode_path
from bundler.model.paths import real_path

POST_BYTES = 64_000_000
"""No result of a page comes near this."""

_CODINGS = (("br", ".br"), ("gzip", ".gz"))
"""Content codings that a file may lie ready in, the smallest first."""

_TEXT = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"}


class Server(Protocol):
    """What a connection asks of its server. `nonce` differs for each run; `report` gets a line for each refusal."""

    site: Site
    nonce: str
    report: Callable[[str], None]

    def answers_to(self, host: str | None) -> bool:
        """Whether a request that names `host` is meant for it."""


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD with files of the site, and POST where the site listens."""

    protocol_version = "HTTP/1.1"
    server_version = "bundler"
    sys_version = ""
    timeout = 120
    # Headers and body leave in two writes; held back for an acknowledgement, each small file would take 40 ms.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """A file, a redirect, or a response that never ends."""
        path = self._accept()
        if path is None:
            return
        if path in self._site.held and self.command == "GET":
            self._hold(path)
        elif path in self._site.redirects:
            self._answer(HTTPStatus.FOUND, {"Location": self._site.redirects[path], "Cache-Control": "no-store"})
        else:
            self._answer_file(path)

    do_HEAD = do_GET  # noqa: N815 - the name is looked up by the base class

    def do_POST(self) -> None:
        """Hand the body to the handler of this path."""
        path = self._accept()
        if path is None:
            return
        listener = self._site.posts.get(path)
        length = self.headers.get("Content-Length", "")
        if listener is None or self.headers.get("Origin") != f"http://{self.headers.get('Host')}":
            self.send_error(HTTPStatus.FORBIDDEN, "unknown address for a POST request")
        elif not length.isdecimal() or int(length) > POST_BYTES:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the length of the body is missing or too large")
        else:
            listener(self.rfile.read(int(length)))
            self._answer(HTTPStatus.NO_CONTENT, {"Cache-Control": "no-store"})

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """A refusal as one line of text; the connection ends, for there may be more that was not understood."""
        del explain
        self.close_connection = True
        # The body of the response to HEAD is left out where all responses are sent.
        self._answer(code, _TEXT, f"{int(code)}: {message or HTTPStatus(code).phrase}\n".encode())
        self._server.report(f"{int(code)} {getattr(self, 'command', None) or '?'} {getattr(self, 'path', '')}")

    def log_message(self, *_: Any) -> None:
        """Say nothing of what went well."""

    @property
    def _server(self) -> Server:
        return cast("Server", self.server)

    @property
    def _site(self) -> Site:
        return self._server.site

    def _accept(self) -> str | None:
        """The path that is asked for; None when the request was refused, and the refusal sent."""
        if not self._server.answers_to(self.headers.get("Host")):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "this server does not answer to that name")
            return None
        if self.command != "POST" and ("Content-Length" in self.headers or "Transfer-Encoding" in self.headers):
            self.send_error(HTTPStatus.BAD_REQUEST, "a request for a file has no body")
            return None
        if "Service-Worker" in self.headers:  # Browsers mark so what they ask for on behalf of one.
            self.send_error(HTTPStatus.FORBIDDEN, "a service worker would outlive this server, and none is served")
            return None
        path = decode_path(self.path)
        if path is None:
            self.send_error(HTTPStatus.BAD_REQUEST, "the address is not valid text")
        return path

    def _answer_file(self, path: str) -> None:
        found = self._site.locate(path)
        opened = None if found is None else _open(found[1])
        if found is None or opened is None:
            self.send_error(HTTPStatus.NOT_FOUND, "the bundle has no such file")
            return
        stream, headers = self._negotiate(*found, opened)
        with stream:
            headers = {"Content-Type": content_type(found[0]), "Cache-Control": "no-cache", **headers}
            headers["ETag"] = self._tag(stream)
            if _matches(self.headers.get("If-None-Match"), headers["ETag"]):
                self._answer(HTTPStatus.NOT_MODIFIED, headers)
            else:
                self._answer(HTTPStatus.OK, headers, stream)

    def _negotiate(self, name: str, content: Content, plain: BinaryIO) -> tuple[BinaryIO, dict[str, str]]:
        """The file, or its compressed form where the browser accepts it."""
        siblings = [(coding, self._site.files.get(name + suffix)) for coding, suffix in _CODINGS]
        ready = [(coding, sibling) for coding, sibling in siblings if sibling is not None]
        if not ready or isinstance(content, bytes):
            return plain, {}
        for coding, sibling in ready:
            stream = _open(sibling) if _takes(self.headers.get("Accept-Encoding", ""), coding) else None
            if stream is not None:
                plain.close()
                return stream, {"Content-Encoding": coding, "Vary": "Accept-Encoding"}
        return plain, {"Vary": "Accept-Encoding"}

    def _tag(self, stream: BinaryIO) -> str:
        """Differs whenever the file does, and for each run of the server."""
        if isinstance(stream, io.BytesIO):
            return f'"{self._server.nonce}-{hash(stream.getvalue()) & 0xFFFFFFFFFFFF:x}"'
        stat = os.fstat(stream.fileno())
        return f'"{self._server.nonce}-{stat.st_mtime_ns:x}-{stat.st_size:x}"'

    def _answer(self, code: int, headers: Mapping[str, str], body: BinaryIO | bytes = b"") -> None:
        stream = io.BytesIO(body) if isinstance(body, bytes) else body
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        self.send_response(code)
        for name, value in {**self._site.headers, **headers}.items():
            self.send_header(name, value)
        if code not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
            self.send_header("Content-Length", str(size))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if size and getattr(self, "command", "") != "HEAD" and code != HTTPStatus.NOT_MODIFIED:
            # A file that has shrunk gives too short a response: the end of the connection shows it to the browser.
            self.close_connection |= self.connection.sendfile(stream, count=size) != size

    def _hold(self, path: str) -> None:
        """Answer, and wait for the end of the connection: when a page or its browser dies, the system ends it."""
        self.send_response(HTTPStatus.OK)
        for name, value in {**self._site.headers, **_TEXT, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        self.connection.settimeout(None)
        try:
            self.connection.recv(1)
        except OSError:
            pass
        finally:
            self._site.held[path]()


def _open(content: Content) -> BinaryIO | None:
    """The content as a stream; None for a file that is gone, or whose place (or folder's) a link has taken."""
    if isinstance(content, bytes):
        return io.BytesIO(content)
    try:
        return _open_file(content) if real_path(content) == content else None
    except OSError:
        return None


def _open_file(path: Path) -> BinaryIO:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags), "rb")


def _takes(accepted: str, coding: str) -> bool:
    for item in accepted.lower().split(","):
        name, _, quality = item.partition(";")
        if name.strip() == coding:
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _matches(wanted: str | None, tag: str) -> bool:
    """Whether the browser has the file already; a weak validator is as good here."""
    if wanted is None:
        return False
    return wanted.strip() == "*" or tag in [item.strip().removeprefix("W/") for item in wanted.split(",")]
