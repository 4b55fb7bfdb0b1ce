"""Files that are not what was built: a typed error that says what to do, nothing unverified kept, and once the host is
mended all is well.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.support import web_host
from tests.support.web_host import Fault, Host, allow_own_workers
from tests.support.web_pages import INSECURE, Visitor, digests, visitor

MODULE = "/vendor/ort.wasm.bundle.min.mjs.txt"
BINARY = "/vendor/ort-wasm-simd-threaded.wasm.003"
MODEL = "/payload/models/wasm/model.onnx.000"
INDEX = "/payload/golden/index.json"
GOLDEN = "/payload/golden/000/out-0.bin"

LOAD = "return (await load(given ?? {})).report;"
TEST = "return (await (await load()).selfTest());"

ALTERED = "IntegrityError"
LOST = "DownloadError"

FAULTS = {
    web_host.flipped: ALTERED,
    web_host.truncated: ALTERED,
    web_host.lengthened: ALTERED,
    web_host.cut_off: LOST,
    web_host.missing: LOST,
    web_host.failing: LOST,
    web_host.page_instead: LOST,
    web_host.endless: ALTERED,
    web_host.inflated: ALTERED,
    web_host.partial: ALTERED,
    web_host.unmodified: LOST,
    web_host.foreign: LOST,
    web_host.circling: LOST,
}


@pytest.mark.parametrize("path", [MODULE, BINARY, MODEL])
def test_bad_file_is_never_used_and_never_kept(guest: Visitor, wasm_host: Host, path: str) -> None:
    good = digests(wasm_host.folder)
    guest.visit(wasm_host)
    for fault in FAULTS:
        wasm_host.faults[path] = fault
        check(guest.error(LOAD), path, fault)
        assert {entry["sha256"] for entry in guest.cached()} <= good, fault.__name__
    assert wasm_host.sent < web_host.ENDLESS // 2, "what is too long was read on"
    wasm_host.faults.clear()
    # Without a reload first: a page may offer to try again.
    assert guest.value(TEST)["passed"]


@pytest.mark.parametrize("path", [INDEX, GOLDEN])
def test_bad_golden_set_proves_nothing(guest: Visitor, wasm_host: Host, path: str) -> None:
    guest.visit(wasm_host).value("globalThis.model = await load();")
    for fault in FAULTS:
        wasm_host.faults[path] = fault
        check(guest.error("return model.selfTest();"), path, fault)
    assert wasm_host.sent < web_host.ENDLESS // 2, "what is too long was read on"
    wasm_host.faults.clear()
    assert guest.value("return model.selfTest();")["passed"]


def check(error: dict[str, str], path: str, fault: Fault) -> None:
    assert error["name"] == FAULTS[fault], (fault.__name__, error)
    whole = path.removesuffix(".000").removesuffix(".003").removesuffix(".txt").removeprefix("/")
    assert whole in error["message"], (fault.__name__, error)


def test_fault_that_goes_away_by_itself_is_none(guest: Visitor, wasm_host: Host) -> None:
    """The browser's own cache, or a proxy, had another version: asked for again, it is there."""

    def once(handler: web_host._Handler, content: bytes) -> None:
        del wasm_host.faults[BINARY]
        web_host.flipped(handler, content)

    wasm_host.faults[BINARY] = once
    assert guest.visit(wasm_host).value(TEST)["passed"]


@pytest.mark.parametrize("path", [BINARY, MODEL])
def test_visitor_can_give_up_a_stalled_download(guest: Visitor, wasm_host: Host, path: str) -> None:
    wasm_host.faults[path] = web_host.stalled
    found = guest.visit(wasm_host).attempt("return (await load({ signal: AbortSignal.timeout(600) })).report;")
    assert found["error"]["name"] == "TimeoutError"
    found = guest.attempt("""
      const control = new AbortController();
      const loading = load({ signal: control.signal });
      setTimeout(() => control.abort(), 300);
      return (await loading).report;
    """)
    assert found["error"]["name"] == "AbortError"
    assert {entry["sha256"] for entry in guest.cached()} <= digests(wasm_host.folder)
    wasm_host.faults.clear()
    assert guest.value(TEST)["passed"]


def test_visitor_can_give_up_while_it_is_asked_why(guest: Visitor, wasm_host: Host) -> None:
    """Where pages have no digests of their own, a server that drops a file is asked whether it answers at all."""
    wasm_host.faults |= {MODEL: web_host.dropped, f"HEAD {MODEL}": web_host.silent}
    wasm_host.url = wasm_host.url.replace("127.0.0.1", INSECURE)
    found = guest.visit(wasm_host).attempt("return (await load({ signal: AbortSignal.timeout(1500) })).report;")
    assert found["error"]["name"] == "TimeoutError"


WORKER = """
  self.addEventListener("install", () => self.skipWaiting());
  self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
  self.addEventListener("fetch", (event) => {
    if (new URL(event.request.url).pathname === "%s") event.respondWith(%s);
  });
"""
REGISTER = """
  await navigator.serviceWorker.register("/worker.js");
  if (!navigator.serviceWorker.controller) {
    await new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve));
  }
"""
UNREGISTER = "for (const one of await navigator.serviceWorker.getRegistrations()) await one.unregister();"

LEFT = {
    "new Response('other')": ALTERED,
    "new Response(new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(1 << 20)) }))": ALTERED,
    "new Response('<title>offline</title>', { headers: { 'content-type': 'text/html' } })": LOST,
    "Response.error()": LOST,
    "new Response(null, { status: 204 })": ALTERED,
}
"""What a service worker answers that an earlier page of the origin left, and how it ends."""


@pytest.mark.parametrize("path", [MODULE, MODEL])
@pytest.mark.parametrize("answer", LEFT)
def test_worker_that_an_earlier_page_left_is_not_believed(
    guest: Visitor, wasm_host: Host, path: str, answer: str
) -> None:
    good = digests(wasm_host.folder)
    allow_own_workers(wasm_host)
    wasm_host.pages["/worker.js"] = WORKER % (path, answer)
    guest.visit(wasm_host).value(REGISTER)
    error = guest.visit(wasm_host).error(LOAD)
    assert error["name"] == LEFT[answer], error
    assert path.removesuffix(".000").removesuffix(".txt").removeprefix("/") in error["message"]
    assert {entry["sha256"] for entry in guest.cached()} <= good
    guest.value(UNREGISTER)
    assert guest.visit(wasm_host).value(TEST)["passed"]


def test_load_that_was_given_up_before_asks_for_nothing(guest: Visitor, wasm_host: Host) -> None:
    guest.visit(wasm_host).value("return 0;")
    wasm_host.asked.clear()
    found = guest.attempt("return (await load({ signal: AbortSignal.abort() })).report;")
    assert found["error"]["name"] == "AbortError"
    assert wasm_host.asked == []


NO_SIMD = """
  const validate = WebAssembly.validate;
  WebAssembly.validate = () => false;
  const compile = () => Promise.reject(new WebAssembly.CompileError("invalid value type 's128'"));
  WebAssembly.compile = WebAssembly.instantiate = compile;
"""


def test_browser_without_simd_is_reported_so_before_any_download(browser: Browser, wasm_host: Host) -> None:
    with visitor(browser) as found:
        found.context.add_init_script(NO_SIMD)
        (state,) = found.visit(wasm_host).value("return probe();")
        assert (state["available"], "SIMD" in state["reason"]) == (False, True)
        wasm_host.asked.clear()
        error = found.error(LOAD)
    assert error["name"] == "IncompatibleError"
    assert "SIMD" in error["message"] + error["why"]
    assert "newer browser" in error["hint"]
    assert wasm_host.data_asked == {}


def test_browser_without_webassembly_is_reported_so(browser: Browser, wasm_host: Host) -> None:
    with visitor(browser) as found:
        found.context.add_init_script("delete globalThis.WebAssembly;")
        error = found.visit(wasm_host).error(LOAD)
    assert error["name"] == "IncompatibleError"
    assert "WebAssembly" in error["message"] + error["why"]


def test_page_whose_policy_forbids_webassembly_is_reported_so(browser: Browser, wasm_host: Host) -> None:
    policy = wasm_host.headers["Content-Security-Policy"].replace(" 'wasm-unsafe-eval'", "")
    wasm_host.headers = {**wasm_host.headers, "Content-Security-Policy": policy}
    with visitor(browser) as found:
        error = found.visit(wasm_host).error(LOAD)
    assert error["name"] == "IncompatibleError"
    assert "wasm-unsafe-eval" in " ".join((error["message"], error["why"], error["hint"])), error


def test_page_whose_policy_forbids_the_runtimes_module_is_reported_so(browser: Browser, wasm_host: Host) -> None:
    forbid(wasm_host, "script-src 'self' blob:", "script-src 'self'")
    with visitor(browser) as found:
        error = found.visit(wasm_host).error(LOAD)
    assert error["name"] == "IncompatibleError"
    assert "needs script-src blob:" in error["why"]


def test_page_whose_policy_forbids_threads_has_one_and_is_reported_so(browser: Browser, wasm_host: Host) -> None:
    forbid(wasm_host, "worker-src blob:", "worker-src 'self'")
    with visitor(browser) as found:
        report = found.visit(wasm_host).value(LOAD, {"threads": 2})
    assert report["threads"] == 1
    assert any("worker-src blob:" in note for note in report["notes"]), report["notes"]


def forbid(site: Host, directive: str, other: str) -> None:
    policy = site.headers["Content-Security-Policy"]
    assert directive in policy
    site.headers = {**site.headers, "Content-Security-Policy": policy.replace(directive, other)}
