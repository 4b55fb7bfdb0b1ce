"""A host of static files as a CDN is one: compressed beforehand, kept by browsers for good, and every byte counted."""

from __future__ import annotations

import socketserver
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import Any

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".json": "application/json",
    ".wasm": "application/wasm",
}
ISOLATED = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """What is served at one address; `brotli` is its compressed form, None where compressing gains nothing."""

    plain: bytes
    brotli: bytes | None = None


@dataclass(slots=True, kw_only=True)
class Traffic:
    """What was answered: bytes of bodies and their headers, by address."""

    answers: list[tuple[str, int]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """All bytes."""
        return sum(size for _, size in self.answers)


class Host(ThreadingHTTPServer):
    """Serves `files`; `traffic` may be exchanged between visits, and `compress` as well."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, files: Mapping[str, File]) -> None:
        self.files, self.compress, self.traffic = files, True, Traffic()
        super().__init__(("127.0.0.1", 0), Answer)

    def server_bind(self) -> None:
        """Bind without asking the network for this machine's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]

    @property
    def url(self) -> str:
        """Its root."""
        return f"http://localhost:{self.server_port}"

    def count(self) -> Traffic:
        """Begin to count anew."""
        self.traffic = Traffic()
        return self.traffic

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes away is no fault."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Answer(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Host

    def do_GET(self) -> None:
        """Answer with a file, from memory."""
        path = self.path.split("?")[0]
        file = self.server.files.get(path)
        squeezed = file is not None and file.brotli is not None and self.server.compress
        body = b"" if file is None else file.brotli if squeezed and file.brotli is not None else file.plain
        tag = f'"{hash(body) & 0xFFFFFFFFFFFF:x}"'
        unchanged = file is not None and self.headers.get("If-None-Match") == tag
        self._written = 0
        self.send_response(404 if file is None else 304 if unchanged else 200)
        if file is not None:
            self._describe(path, tag, squeezed=squeezed)
        self.send_header("Content-Length", str(0 if unchanged else len(body)))
        self.end_headers()
        if not unchanged:
            self._written += self.wfile.write(body)
        self.server.traffic.answers.append((path, self._written))

    def _describe(self, path: str, tag: str, *, squeezed: bool) -> None:
        kind = PurePosixPath(path).suffix
        kept = "no-cache" if kind == ".html" else "public, max-age=31536000, immutable"
        headers = {"Content-Type": KINDS.get(kind, "application/octet-stream"), "Cache-Control": kept, "ETag": tag}
        headers |= {"Vary": "Accept-Encoding", **ISOLATED, **({"Content-Encoding": "br"} if squeezed else {})}
        for name, value in headers.items():
            self.send_header(name, value)

    def flush_headers(self) -> None:
        """Count them on their way."""
        self._written += sum(map(len, getattr(self, "_headers_buffer", ())))
        super().flush_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def open_host(files: Mapping[str, File]) -> Iterator[Host]:
    """Serve `files` on this machine for as long as the block runs."""
    with Host(files) as host:
        threading.Thread(target=host.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield host
        finally:
            host.shutdown()
