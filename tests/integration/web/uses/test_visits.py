"""What a visitor gets: a first visit, a second one that fetches nothing, another version, no cache, no network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support import models
from tests.support.command_line import CommandLine
from tests.support.web_host import HEAD, Host, allow_own_workers, flipped, host
from tests.support.web_pages import INSECURE, Visitor, digests, visitor

from .conftest import build

LOAD = "const model = await load(); const report = model.report; await model.dispose(); return report;"
TEST = "const model = await load(given ?? {}); return { test: await model.selfTest(), report: model.report };"


def test_first_visit_gives_the_reference_outputs(guest: Visitor, wasm_host: Host) -> None:
    found = guest.visit(wasm_host).value(TEST, {"threads": 2})
    assert found["test"]["passed"], found["test"]
    assert found["test"]["samples"] > 0
    report = found["report"]
    assert (report["variant"], report["build"], report["providers"]) == ("wasm", "wasm", ["wasm"])
    assert (report["threads"], report["crossOriginIsolated"], report["fromCache"]) == (2, True, False)
    assert (report["rejected"], report["fellBack"], report["notes"]) == ({}, False, [])
    assert guest.complaints == []


def test_page_that_is_not_isolated_runs_one_thread_and_says_which_headers_to_set(
    guest: Visitor, wasm_bundle: Path
) -> None:
    with host(wasm_bundle, isolated=False) as site:
        found = guest.visit(site).value(TEST, {"threads": 2})
    assert found["test"]["passed"], found["test"]
    assert (found["report"]["threads"], found["report"]["crossOriginIsolated"]) == (1, False)
    (note,) = found["report"]["notes"]
    assert "Cross-Origin-Opener-Policy: same-origin" in note
    assert "Cross-Origin-Embedder-Policy: require-corp" in note


def test_second_visit_downloads_nothing(guest: Visitor, wasm_host: Host, wasm_bundle: Path) -> None:
    assert guest.visit(wasm_host).value(LOAD)["fromCache"] is False
    assert {entry["sha256"] for entry in guest.cached()} <= digests(wasm_bundle)
    wasm_host.asked.clear()
    assert guest.visit(wasm_host).value(LOAD)["fromCache"] is True
    assert wasm_host.data_asked == {}


def test_first_visit_asks_for_each_file_once_and_for_no_golden_set(guest: Visitor, wasm_host: Host) -> None:
    guest.visit(wasm_host).value(LOAD)
    assert set(wasm_host.data_asked.values()) == {1}
    assert not [path for path in wasm_host.data_asked if "golden" in path]
    assert [path for path in wasm_host.asked if path.endswith(".mjs.txt")] == ["/vendor/ort.wasm.bundle.min.mjs.txt"]


def test_cleared_cache_is_downloaded_again(guest: Visitor, wasm_host: Host) -> None:
    guest.visit(wasm_host).value(LOAD)
    guest.value("await clearCache();")
    assert guest.cached() == []
    assert guest.visit(wasm_host).value(LOAD)["fromCache"] is False


def test_visitor_who_wants_no_cache_keeps_nothing(guest: Visitor, wasm_host: Host) -> None:
    report = guest.visit(wasm_host).value("return (await load({ cache: false })).report;")
    assert report["notes"] == []
    assert guest.cached() == []


def test_new_version_fetches_what_changed_and_drops_what_is_old(
    guest: Visitor, bundler: CommandLine, wasm_bundle: Path, tmp_path: Path
) -> None:
    """Same name, other weights: the runtime's parts stay, the model's are fetched."""
    model = models.mlp(hidden=60_000)
    model.graph.initializer[0].raw_data = bytes(len(model.graph.initializer[0].raw_data))
    changed = build(bundler, models.save(model, tmp_path, "wide.onnx"), "web-wasm", "--set", "web.part_mb=2")
    deployed = tmp_path / "deployed"
    shutil.copytree(wasm_bundle, deployed)
    with host(deployed, keep_code=False) as site:
        guest.visit(site).value(LOAD)
        shutil.rmtree(deployed)
        shutil.copytree(changed, deployed)
        site.asked.clear()
        found = guest.visit(site).value(TEST)
        assert found["test"]["passed"], found["test"]
        fetched = [path for path in site.data_asked if "golden" not in path]
        assert fetched
        assert all(path.startswith("/payload/models/") for path in fetched)
        assert {entry["sha256"] for entry in guest.cached()} <= digests(changed)


def test_progress_counts_every_byte_once(guest: Visitor, wasm_host: Host) -> None:
    watch = """
      const events = [];
      const model = await load({ onProgress: (event) => events.push(event) });
      await model.dispose();
      return events;
    """
    first = guest.visit(wasm_host).value(watch)
    loaded = [event["loaded"] for event in first]
    assert loaded == sorted(loaded)
    assert {event["total"] for event in first} == {loaded[-1]}
    assert [event["phase"] for event in first][-2:] == ["open", "ready"]
    assert not any(event["cached"] for event in first)
    second = guest.visit(wasm_host).value(watch)
    assert second[-1]["loaded"] == second[-1]["total"] == loaded[-1]
    assert second[-1]["cached"] is True


def test_offline_first_visit_says_so_and_keeps_nothing(guest: Visitor, wasm_host: Host) -> None:
    guest.visit(wasm_host).value("return 0;")
    guest.context.set_offline(True)
    error = guest.error(LOAD)
    assert error["name"] == "DownloadError"
    assert "offline" in error["message"]
    assert guest.cached() == []
    guest.context.set_offline(False)
    assert guest.value(LOAD)["variant"] == "wasm"


def test_offline_second_visit_works(guest: Visitor, wasm_host: Host) -> None:
    guest.visit(wasm_host).value(LOAD)
    guest.context.set_offline(True)
    assert guest.visit(wasm_host).value(LOAD)["fromCache"] is True


def test_two_loads_at_once_give_two_models(guest: Visitor, wasm_host: Host) -> None:
    found = guest.visit(wasm_host).value("""
      const models = await Promise.all([load(), load()]);
      const tests = await Promise.all(models.map((model) => model.selfTest()));
      await models[0].dispose();
      return [...tests.map(({ passed }) => passed), (await models[1].selfTest()).passed];
    """)
    assert found == [True, True, True]


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param("delete globalThis.caches;", id="no-cache-api"),
        pytest.param(
            "CacheStorage.prototype.open = () => Promise.reject(new DOMException('refused', 'SecurityError'));",
            id="private-mode",
        ),
        pytest.param(
            "Cache.prototype.put = () => Promise.reject(new DOMException('full', 'QuotaExceededError'));", id="quota"
        ),
        pytest.param("Cache.prototype.match = () => Promise.reject(new Error('broken'));", id="unreadable"),
    ],
)
def test_trouble_with_the_cache_is_a_note_and_no_more(browser: Browser, wasm_host: Host, trouble: str) -> None:
    with visitor(browser) as found:
        found.context.add_init_script(trouble)
        report = found.visit(wasm_host).value(LOAD)
    assert report["variant"] == "wasm"
    assert any("cache" in note or "kept" in note for note in report["notes"]), report["notes"]


def test_quota_of_the_browser_itself_is_a_note_and_no_more(guest: Visitor, wasm_host: Host) -> None:
    session = guest.context.new_cdp_session(guest.page)
    session.send("Storage.overrideQuotaForOrigin", {"origin": wasm_host.url, "quotaSize": 1_000_000})
    report = guest.visit(wasm_host).value(LOAD)
    assert any("could not be cached" in note for note in report["notes"]), report["notes"]


def test_rotten_copy_in_the_cache_is_fetched_again(guest: Visitor, wasm_host: Host) -> None:
    guest.visit(wasm_host).value(LOAD)
    guest.page.evaluate("""async () => {
      for (const name of await caches.keys()) {
        const cache = await caches.open(name);
        for (const key of await cache.keys()) {
          const bytes = new Uint8Array(await (await cache.match(key)).arrayBuffer());
          bytes[bytes.length >> 1] ^= 1;
          await cache.put(key, new Response(bytes));
        }
      }
    }""")
    wasm_host.asked.clear()
    found = guest.visit(wasm_host).value(TEST)
    assert found["test"]["passed"]
    assert found["report"]["fromCache"] is False
    assert len(wasm_host.data_asked) > 1


PLAIN = """
import { load } from "./projects/a%20b%2520c/index.js";

const model = await load();
const { y } = await model.run({ x: new Float32Array(8) });
document.querySelector("#answer").textContent = `${y.dims} ${(await model.selfTest()).passed}`;
"""


def test_plain_page_uses_a_package_that_lies_in_any_folder(guest: Visitor, wasm_bundle: Path, tmp_path: Path) -> None:
    """No build step: a page, a script of type module, and the bundle's folder somewhere on the host."""
    shutil.copytree(wasm_bundle, tmp_path / "projects" / "a b%20c")
    with host(tmp_path) as site:
        site.pages["/plain.html"] = f'{HEAD}<p id="answer"></p><script type="module" src="plain.js"></script>'
        site.pages["/plain.js"] = PLAIN
        expect(guest.visit(site, "/plain.html").page.locator("#answer")).to_have_text("1,4 true", timeout=30_000)
    assert guest.complaints == []


WORKER = """
import { load } from "ENTRY";

const answer = async () => {
  const model = await load({ threads: 2 });
  return { passed: (await model.selfTest()).passed, threads: model.report.threads };
};
postMessage(await answer().catch(String));
"""


@pytest.mark.parametrize("entry", ["/index.js", "/variants/wasm.js"])
def test_package_works_in_a_worker(guest: Visitor, wasm_host: Host, entry: str) -> None:
    """There the page stays free while the model computes; it has no document to lean on."""
    wasm_host.pages["/worker.js"] = WORKER.replace("ENTRY", entry)
    allow_own_workers(wasm_host)
    found = guest.visit(wasm_host).value("""
      const worker = new Worker("/worker.js", { type: "module" });
      return new Promise((resolve) => {
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = ({ message }) => resolve(message ?? "the worker did not start");
      });
    """)
    assert found == {"passed": True, "threads": 2}


def test_plain_http_works_checks_and_says_what_is_lost(guest: Visitor, wasm_host: Host) -> None:
    """Pages that are neither on https nor on this machine have no digests, no cache and no threads of their own."""
    wasm_host.url = wasm_host.url.replace("127.0.0.1", INSECURE)
    found = guest.visit(wasm_host).value(TEST)
    assert found["test"]["passed"]
    assert found["report"]["threads"] == 1
    assert any("https" in note for note in found["report"]["notes"]), found["report"]["notes"]
    wasm_host.faults["/payload/models/wasm/model.onnx.001"] = flipped
    error = guest.visit(wasm_host).error(LOAD)
    assert error["name"] in ("DownloadError", "IntegrityError")
    assert "model.onnx" in error["message"]


ELSEWHERE = "const model = await load({ base: given }); return { test: await model.selfTest(), report: model.report };"


class TestFilesOnAnotherHost:
    """The page's code comes from one host, the model and the runtime from another."""

    @pytest.fixture
    def files(self, wasm_bundle: Path, tmp_path: Path) -> Iterator[Host]:
        """A host that has the data alone, and lets any page have it."""
        for name in ("payload", "vendor"):
            shutil.copytree(wasm_bundle / name, tmp_path / "deep folder" / name)
        with host(tmp_path) as site:
            site.headers = {"Access-Control-Allow-Origin": "*"}
            yield site

    @pytest.fixture
    def page(self, wasm_bundle: Path, files: Host) -> Iterator[Host]:
        """A host that has the code alone, and whose policy names the other."""
        with host(wasm_bundle) as site:
            policy = site.headers["Content-Security-Policy"].replace("connect-src", f"connect-src {files.url}")
            site.headers = {**site.headers, "Content-Security-Policy": policy}
            yield site

    def test_they_are_taken_from_there_alone(self, guest: Visitor, page: Host, files: Host) -> None:
        found = guest.visit(page).value(ELSEWHERE, f"{files.url}/deep folder")
        assert found["test"]["passed"], found["test"]
        assert page.data_asked == {}
        assert set(files.data_asked.values()) == {1}
        assert all(path.startswith("/deep folder/") for path in files.asked)
        files.asked.clear()
        assert guest.visit(page).value(LOAD)["fromCache"] is True  # the same bytes, wherever they are

    def test_what_differs_there_is_refused(self, guest: Visitor, page: Host, files: Host) -> None:
        (model,) = (path for path in (files.folder / "deep folder" / "payload").rglob("*.000"))
        path = f"/{model.relative_to(files.folder).as_posix()}"
        files.faults[path] = flipped
        error = guest.visit(page).error(ELSEWHERE, f"{files.url}/deep folder/")
        assert error["name"] == "IntegrityError"
        assert path in files.asked

    @pytest.mark.parametrize("base", ["", "data:text/plain,", "ftp://files.example/", "http://", "javascript:alert(1)"])
    def test_what_is_no_folder_of_a_host_is_refused(self, guest: Visitor, page: Host, base: str) -> None:
        error = guest.visit(page).error(ELSEWHERE, base)
        assert error["name"] == "InputError"
        assert "begins with https: or http:" in error["hint"]
