"""A hub of models on this machine: what the client asks of the real one, for the folders that a test gives."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"
"""The commit of all its models, on their only branch, `main`."""

ERRORS = {"gated": (403, "GatedRepo"), "revision": (404, "RevisionNotFound"), "missing": (401, "RepoNotFound")}


@dataclass(slots=True, kw_only=True)
class FakeHub:
    """`folders` by model; `asked` lists the paths of all requests in order."""

    folders: Mapping[str, Path]
    gated: tuple[str, ...] = ()
    address: str = ""
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and content for a request."""
        self.asked.append(path)
        parts = path.partition("?")[0].strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            return self._describe("/".join(parts[2:4]), parts[5] if len(parts) > 5 else "main")
        return self._file("/".join(parts[:2]), "/".join(parts[4:]))

    def _describe(self, model: str, revision: str) -> tuple[int, dict[str, str], bytes]:
        if model not in self.folders:
            return self._error("missing")
        if revision not in ("main", COMMIT):
            return self._error("revision")
        names = sorted(path.name for path in self.folders[model].iterdir())
        data = {"id": model, "modelId": model, "sha": COMMIT, "private": False, "tags": [], "downloads": 0, "likes": 0}
        siblings = [{"rfilename": name} for name in names]
        return 200, {"Content-Type": "application/json"}, json.dumps({**data, "siblings": siblings}).encode()

    def _file(self, model: str, name: str) -> tuple[int, dict[str, str], bytes]:
        if model in self.gated:
            return self._error("gated")
        data = (self.folders[model] / name).read_bytes()
        return 200, {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha256(data).hexdigest()}"'}, data

    def _error(self, kind: str) -> tuple[int, dict[str, str], bytes]:
        status, code = ERRORS[kind]
        return status, {"X-Error-Code": code, "X-Error-Message": "no"}, b""


@contextmanager
def serve_hub(hub: FakeHub) -> Iterator[FakeHub]:
    """The hub on a port of this machine, while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(with_content=True)

        def do_HEAD(self) -> None:
            self._send(with_content=False)

        def _send(self, *, with_content: bool) -> None:
            status, headers, data = hub.answer(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            if with_content:
                self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
