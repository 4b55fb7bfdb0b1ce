import gzip
import http.client
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bundler.devices.browser.headers import content_type, render_policy, site_headers
from bundler.devices.browser.serving import SiteServer, open_server
from bundler.devices.browser.site import Site, list_folder
from bundler.model.errors import UsageError


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("not yours")
    folder = tmp_path / "package"
    (folder / "demo").mkdir(parents=True)
    (folder / "vendor").mkdir()
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("hidden")
    (folder / "demo" / "index.html").write_text("<h1>demo</h1>")
    (folder / "index.js").write_text("export {};")
    (folder / "a name.json").write_text("{}")
    (folder / "vendor" / "big.wasm").write_bytes(b"\0asm" * 100_000)
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "outside").symlink_to(tmp_path)
    return folder


@pytest.fixture
def server(package: Path) -> Iterator[SiteServer]:
    with serve(package) as running:
        yield running


@contextmanager
def serve(package: Path, host: str = "127.0.0.1", **changes: object) -> Iterator[SiteServer]:
    site = Site(files=list_folder(package), headers=site_headers(), redirects={"/": "/demo/"}, **changes)  # type: ignore[arg-type]
    with open_server(site, host=host) as running:
        yield running


class Reply:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.body, self.headers = response.status, response.read(), response.headers


def ask(server: SiteServer, target: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, target, body, named)
        return Reply(connection.getresponse())
    finally:
        connection.close()


def ask_raw(server: SiteServer, text: str) -> bytes:
    """Bytes that no HTTP client would send."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as stream:
        stream.sendall(text.encode("latin-1"))
        parts = []
        while part := stream.recv(65536):
            parts.append(part)
        return b"".join(parts)


def test_pages_may_use_threads_and_nothing_of_other_origins(server: SiteServer) -> None:
    reply = ask(server, "/demo/")
    assert (reply.status, reply.body) == (200, b"<h1>demo</h1>")
    assert reply.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert reply.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    assert reply.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Referrer-Policy"] == "no-referrer"
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "'unsafe-eval'" not in policy


def test_isolation_can_be_left_out_and_the_rest_stays() -> None:
    headers = site_headers(isolated=False)
    assert "Cross-Origin-Embedder-Policy" not in headers
    assert headers["Content-Security-Policy"] == render_policy()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.mjs", "text/javascript; charset=utf-8"),
        ("a.JS", "text/javascript; charset=utf-8"),
        ("a.wasm", "application/wasm"),
        ("a.d.ts", "text/plain; charset=utf-8"),
        ("model.onnx", "application/octet-stream"),
        ("vendor/LICENSE", "text/plain; charset=utf-8"),
    ],
)
def test_files_have_the_types_that_browsers_insist_on(name: str, kind: str) -> None:
    assert content_type(name) == kind


def test_the_root_leads_to_the_demo(server: SiteServer) -> None:
    reply = ask(server, "/?from=here")
    assert (reply.status, reply.headers["Location"]) == (302, "/demo/")


def test_names_are_decoded_once(server: SiteServer) -> None:
    assert ask(server, "/a%20name.json").body == b"{}"
    assert ask(server, "/a%2520name.json").status == 404


@pytest.mark.parametrize(
    "target",
    [
        "/../secret.txt",
        "/demo/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/%2e%2e%2fsecret.txt",
        "/..%5csecret.txt",
        "/..%255c..%255csecret.txt",
        "/demo/..%00/secret.txt",
        "//secret.txt",
        "/./index.js",
        "/%2e/index.js",
        "/link.txt",
        "/outside/secret.txt",
        "/.git/config",
        "/demo",
        "/vendor/",
        "/index.js/",
        "/INDEX.JS%20",
    ],
)
def test_nothing_but_the_files_of_the_bundle_is_served(server: SiteServer, target: str) -> None:
    reply = ask(server, target)
    assert reply.status == 404
    assert b"secret" not in reply.body
    assert b"not yours" not in reply.body


def test_an_absolute_address_means_its_path(server: SiteServer) -> None:
    assert ask(server, f"{server.url}index.js").status == 200
    assert ask(server, "/%ff").status == 400


def test_what_appears_while_it_runs_is_not_served(package: Path, server: SiteServer) -> None:
    (package / "later.txt").write_text("new")
    assert ask(server, "/later.txt").status == 404


def test_a_file_that_a_link_has_replaced_is_not_served(package: Path, server: SiteServer) -> None:
    (package / "index.js").unlink()
    (package / "index.js").symlink_to(package.parent / "secret.txt")
    assert ask(server, "/index.js").status == 404


def test_a_folder_that_a_link_has_replaced_is_not_served(package: Path, server: SiteServer) -> None:
    (package / "demo").rename(package.parent / "moved")
    (package / "demo").symlink_to(package.parent / "moved")
    assert ask(server, "/demo/index.html").status == 404


def test_a_file_that_is_gone_is_not_found(package: Path, server: SiteServer) -> None:
    (package / "index.js").unlink()
    assert ask(server, "/index.js").status == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "", "127.0.0.1", "localhost:1", "[::1]", "a@localhost"]
)
def test_other_names_of_this_machine_are_refused(server: SiteServer, host: str) -> None:
    assert ask(server, "/index.js", Host=host).status == 421


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_its_own_names_are_taken(server: SiteServer, name: str) -> None:
    assert ask(server, "/index.js", Host=f"{name}:{server.server_port}").status == 200


def test_on_all_interfaces_addresses_are_taken_and_names_are_not(package: Path) -> None:
    with serve(package, "0.0.0.0") as server:  # noqa: S104
        assert ask(server, "/index.js", Host=f"192.0.2.7:{server.server_port}").status == 200
        assert ask(server, "/index.js", Host=f"evil.example:{server.server_port}").status == 421
        assert server.url == f"http://localhost:{server.server_port}/"


def test_a_name_of_its_own_is_the_only_one(package: Path) -> None:
    site = Site(files=list_folder(package), headers=site_headers())
    with open_server(site, name="0a1b.localhost") as server:
        assert server.url == f"http://0a1b.localhost:{server.server_port}/"
        assert ask(server, "/index.js", Host=f"0a1b.LOCALHOST:{server.server_port}").status == 200
        for name in ("127.0.0.1", "localhost", "0a1c.localhost"):
            assert ask(server, "/index.js", Host=f"{name}:{server.server_port}").status == 421


def test_a_service_worker_is_never_served(server: SiteServer) -> None:
    assert ask(server, "/index.js", Service_Worker="script").status == 403


def test_a_second_request_transfers_nothing(package: Path, server: SiteServer) -> None:
    first = ask(server, "/index.js")
    again = ask(server, "/index.js", If_None_Match=f'"other", W/{first.headers["ETag"]}')
    assert (again.status, again.body) == (304, b"")
    assert again.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    (package / "index.js").write_text("export default 1;")
    assert ask(server, "/index.js", If_None_Match=first.headers["ETag"]).status == 200


def test_another_server_on_the_same_port_is_not_mistaken_for_this_one(package: Path) -> None:
    with serve(package) as first:
        tag = ask(first, "/index.js").headers["ETag"]
    with serve(package) as second:
        assert ask(second, "/index.js", If_None_Match=tag).status == 200


def test_head_tells_the_size_and_sends_nothing(server: SiteServer) -> None:
    reply = ask(server, "/vendor/big.wasm", "HEAD")
    assert (reply.status, reply.body, reply.headers["Content-Length"]) == (200, b"", "400000")
    assert ask(server, "/nothing", "HEAD").body == b""


def test_one_connection_serves_many_requests_without_delay(server: SiteServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    began = time.monotonic()
    for _ in range(50):
        connection.request("GET", "/index.js")
        assert connection.getresponse().read() == b"export {};"
    connection.close()
    assert time.monotonic() - began < 1.5  # Held back for acknowledgements, each would take 40 ms.


def test_a_slow_reader_keeps_nobody_waiting(server: SiteServer) -> None:
    with socket.create_connection(("127.0.0.1", server.server_port)):
        assert ask(server, "/index.js").status == 200


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [("gzip, br", "br"), ("gzip", "gzip"), ("br;q=0, gzip", "gzip"), ("identity", None), ("", None), ("brr", None)],
)
def test_compressed_siblings_are_sent_where_they_are_taken(package: Path, accepted: str, coding: str | None) -> None:
    (package / "index.js.br").write_bytes(b"as brotli")
    (package / "index.js.gz").write_bytes(gzip.compress(b"export {};"))
    with serve(package) as server:
        reply = ask(server, "/index.js", Accept_Encoding=accepted)
        assert reply.headers["Content-Encoding"] == coding
        assert reply.headers["Vary"] == "Accept-Encoding"
        assert reply.headers["Content-Type"] == "text/javascript; charset=utf-8"
        assert ask(server, "/index.js", Accept_Encoding=accepted, If_None_Match=reply.headers["ETag"]).status == 304
    expected = {"br": b"as brotli", "gzip": gzip.compress(b"export {};"), None: b"export {};"}
    assert len(reply.body) == len(expected[coding])


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(server: SiteServer, method: str) -> None:
    reply = ask(server, "/index.js", method)
    assert reply.status == 501
    assert reply.headers["X-Content-Type-Options"] == "nosniff"


def test_a_request_with_a_body_cannot_hide_another_one(server: SiteServer) -> None:
    host = f"Host: localhost:{server.server_port}\r\n"
    inner = f"GET /index.js HTTP/1.1\r\n{host}\r\n"
    answer = ask_raw(server, f"GET /index.js HTTP/1.1\r\n{host}Content-Length: {len(inner)}\r\n\r\n{inner}")
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


def test_what_is_no_request_is_refused_as_text(server: SiteServer) -> None:
    answer = ask_raw(server, "<script>alert(1)</script> / HTTP/1.1\r\n\r\n")
    assert b"text/plain" in answer
    assert b"text/html" not in answer


def test_posts_are_heard_only_where_someone_listens_and_from_its_own_pages(package: Path) -> None:
    heard: list[bytes] = []
    with serve(package, posts={"/hear": heard.append}) as server:
        other = f"http://localhost:{server.server_port}"  # A name of ours, but not the one that was asked.
        assert ask(server, "/hear", "POST", b"evil", Origin=other).status == 403
        origin = f"http://127.0.0.1:{server.server_port}"
        assert ask(server, "/hear", "POST", b"hello", Origin=origin).status == 204
        assert ask(server, "/hear", "POST", b"evil", Origin="http://evil.example").status == 403
        assert ask(server, "/hear", "POST", b"evil").status == 403
        assert ask(server, "/index.js", "POST", b"evil", Origin=origin).status == 403
    assert heard == [b"hello"]


def test_the_end_of_a_held_connection_is_reported(package: Path) -> None:
    ended = threading.Event()
    with serve(package, held={"/alive": ended.set}) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
        connection.request("GET", "/alive")
        response = connection.getresponse()
        assert response.status == 200
        assert not ended.wait(0.2)
        response.close()
        connection.close()
        assert ended.wait(5)


def test_a_port_in_use_is_said(server: SiteServer) -> None:
    taken = open_server(Site(files={}, headers={}), port=server.server_port)
    with pytest.raises(UsageError, match=f"port {server.server_port} of 127.0.0.1 is in use") as caught, taken:
        pass
    assert "--port" in str(caught.value.hint)


def test_an_address_of_another_machine_cannot_be_served() -> None:
    with (
        pytest.raises(UsageError, match=r"cannot serve on 192\.0\.2\.1"),
        open_server(Site(files={}, headers={}), host="192.0.2.1"),
    ):
        pass


def test_the_listing_holds_no_links_and_nothing_hidden(package: Path) -> None:
    assert sorted(list_folder(package)) == ["/a name.json", "/demo/index.html", "/index.js", "/vendor/big.wasm"]


@pytest.mark.skipif(os.name != "posix", reason="file names of other systems hold no such characters")
def test_odd_names_are_found_by_their_exact_path(tmp_path: Path) -> None:
    (tmp_path / 'a"b\\c%2f.txt').write_text("odd")
    with serve(tmp_path) as server:
        assert ask(server, "/a%22b%5Cc%252f.txt").body == b"odd"
