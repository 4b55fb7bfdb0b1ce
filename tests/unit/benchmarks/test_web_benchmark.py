"""The benchmark of visits serves both sides alike, counts every byte, and stands without a browser."""

import http.client
import json
import time
from pathlib import Path

import pytest

from tests.unit.benchmarks.test_benchmarks import load

PAGE, CODE = "/page.html", "/code.mjs"


@pytest.fixture
def web_host(monkeypatch):
    return load("web_host", monkeypatch)


@pytest.fixture
def host(web_host):
    files = {PAGE: web_host.File(plain=b"<p>hello"), CODE: web_host.File(plain=b"x" * 1000, brotli=b"small")}
    with web_host.open_host(files) as running:
        yield running


def get(host, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", host.server_port)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_files_are_kept_for_good_and_pages_are_asked_for_again(host):
    assert "immutable" in get(host, CODE)[0].headers["Cache-Control"]
    page, _ = get(host, PAGE)
    assert page.headers["Cache-Control"] == "no-cache"
    again, body = get(host, PAGE, **{"If-None-Match": page.headers["ETag"]})
    assert (again.status, body) == (304, b"")


def test_both_sides_are_isolated_and_compressed_alike(host):
    code, body = get(host, CODE)
    assert (body, code.headers["Content-Encoding"]) == (b"small", "br")
    assert code.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    host.compress = False
    code, body = get(host, CODE)
    assert (len(body), code.headers["Content-Encoding"]) == (1000, None)


def test_bodies_and_headers_are_counted(host):
    traffic = host.count()
    get(host, CODE)
    until = time.monotonic() + 10
    while not traffic.answers and time.monotonic() < until:
        time.sleep(0.01)  # The answer is counted when it is on its way, which its reader may not wait for.
    [(path, size)] = traffic.answers
    assert path == CODE
    assert len(b"small") + 200 < size < 700
    assert host.count().total == 0


def test_what_is_not_there_is_missing(host):
    assert get(host, "/elsewhere")[0].status == 404


def test_pages_of_both_sides_ask_the_same_of_the_model(monkeypatch, tmp_path):
    pages = load("web_pages", monkeypatch)
    golden = tmp_path / "payload" / "golden"
    golden.mkdir(parents=True)
    sample = {"inputs": {"x": {"type": "float32", "shape": [1, 2]}}, "outputs": {"y": {}}}
    (golden / "index.json").write_text(json.dumps({"samples": [sample]}))
    recipe = pages.describe_inputs(tmp_path)
    ours = pages.write_page("bundle.html", recipe, {})
    theirs = pages.write_page("by_hand.html", recipe, {"ENTRY": "ort.min.mjs", "OPTIONS": "{}"})
    for page in (ours, theirs):
        assert '[{"name": "x", "type": "float32", "shape": [1, 2]}]' in page
        assert 'outputs["y"]' in page
    assert 'from "/runtime/ort.min.mjs"' in theirs


def take(tables, ours, theirs):
    def visit(seconds, size):
        return tables.Round(
            first=seconds, second=seconds / 2, first_bytes=size, second_bytes=300, answers=(), reported=({}, {})
        )

    taken = tables.Taken(model="tiny", ours="/bundle.html", theirs=("/ort.min.mjs.html",))
    for name in ("this machine", "slow, not compressed"):
        taken.rounds[name] = {"/bundle.html": [visit(*ours)], "/ort.min.mjs.html": [visit(*theirs)]}
    taken.steady = {"/bundle.html": [0.01], "/ort.min.mjs.html": [0.01]}
    return taken


def test_the_tables_hold_figures_beside_their_bars(monkeypatch):
    tables = load("web_tables", monkeypatch)
    text = "\n".join(table.render() for table in tables.tabulate("WASM", [take(tables, (0.8, 3e6), (1.0, 5e6))]))
    assert "| tiny | `ort.min.mjs` | 3.00 MB | 5.00 MB | 0.60 | 0.6 | met |" in text
    assert "0.80 (0.80…0.80) | 0.8, met |" in text
    assert "0.5, **missed**" in text
    assert "navigation to first inference, slow, not compressed" in text


def test_without_a_browser_it_says_so(monkeypatch, tmp_path: Path):
    web = load("subjects.web", monkeypatch)
    monkeypatch.setattr(web, "find_browser", lambda: None)
    section = web.measure(load("workplace", monkeypatch).Workplace(folder=tmp_path, quick=True))
    assert "Not measured: no browser" in section.render("*now*")
