"""A server that answers one thing when a file is checked and another when it is run: what runs is what was checked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Playwright

from tests.support import web_host
from tests.support.web_host import Host, allow_own_workers
from tests.support.web_pages import IN_WORKER, INSECURE, SOFTWARE_WEBGPU, WORKER, Visitor, launch, visitor

MODULE = "vendor/ort.wasm.bundle.min.mjs"
ADDRESS = f"/{MODULE}.txt"

SIGN = "/foreign-code-ran"
"""What the server's own code asks for, wherever it runs: in a page, a worker or a thread."""

EVIL = f'fetch(location.origin + "{SIGN}");'.encode()

LOAD = "return (await load(given ?? {})).report;"
TEST = "const model = await load({ threads: 2 }); return [(await model.selfTest()).passed, model.report.threads];"


def answer_once(site: Host) -> None:
    """The true module the first time, and the server's own code before it from then on."""

    def answer(handler: web_host._Handler, content: bytes) -> None:
        known = site.asked.count(ADDRESS) > 1
        # Nothing in between may keep it: each request reaches the server.
        handler.answer(200, (EVIL if known else b"") + content, {"Cache-Control": "no-store"})

    site.faults[ADDRESS] = answer


def pose_as_vite(site: Host) -> None:
    """A module that begins as those of a development server do, with code of the server's own."""
    client, script = "/@vite/client", {"Content-Type": "text/javascript"}
    site.pages[client] = "export const createHotContext = () => {};"
    site.faults[client] = lambda handler, content: handler.answer(200, content, script)
    head = b'import { createHotContext } from "/@vite/client";import.meta.hot = 1;'
    site.faults[ADDRESS] = lambda handler, content: handler.answer(200, head + EVIL + content, script)


@pytest.fixture
def fickle(wasm_host: Host) -> Host:
    """A host that answers differently the second time."""
    wasm_host.keep_code = False
    answer_once(wasm_host)
    allow_own_workers(wasm_host)
    wasm_host.pages["/worker.js"] = WORKER
    return wasm_host


@pytest.mark.parametrize("place", [TEST, IN_WORKER], ids=["page", "worker"])
def test_server_that_answers_differently_the_second_time_is_not_run(guest: Visitor, fickle: Host, place: str) -> None:
    """With threads, each of which is a worker with the module's code."""
    assert guest.visit(fickle).value(place) == [True, 2]
    # What a model does when its instance of the runtime is lost: the next load takes the module anew.
    assert guest.value(place) == [True, 2]
    guest.page.wait_for_timeout(300)
    assert SIGN not in fickle.asked


def test_second_visitor_of_such_a_server_is_refused(guest: Visitor, fickle: Host) -> None:
    fickle.asked.append(ADDRESS)
    assert guest.visit(fickle).error(LOAD)["name"] == "IntegrityError"
    assert SIGN not in fickle.asked


@pytest.fixture
def foreigner(playwright: Playwright, wasm_host: Host) -> Iterator[Visitor]:
    """A visitor of the same host at an address that is secure, as https is, and not this machine's own."""
    wasm_host.url = wasm_host.url.replace("127.0.0.1", INSECURE)
    browser = launch(playwright, *SOFTWARE_WEBGPU, f"--unsafely-treat-insecure-origin-as-secure={wasm_host.url}")
    try:
        with visitor(browser) as found:
            yield found
    finally:
        browser.close()


def test_module_that_poses_as_a_development_servers_is_not_believed(foreigner: Visitor, wasm_host: Host) -> None:
    pose_as_vite(wasm_host)
    foreigner.visit(wasm_host)
    assert foreigner.page.evaluate("isSecureContext")
    check_refusal(foreigner, wasm_host)


def test_nor_is_it_believed_on_this_machine_or_on_plain_http(guest: Visitor, wasm_host: Host) -> None:
    pose_as_vite(wasm_host)
    check_refusal(guest.visit(wasm_host), wasm_host)
    wasm_host.url = wasm_host.url.replace("127.0.0.1", INSECURE)
    # There it is the browser that compares, and it does not tell what it found.
    check_refusal(guest.visit(wasm_host), wasm_host, "DownloadError")


def check_refusal(found: Visitor, site: Host, name: str = "IntegrityError") -> None:
    """The load is refused by the file's name, and nothing of the server's own ran."""
    error = found.error(LOAD)
    assert error["name"] == name
    assert MODULE in error["message"]
    found.page.wait_for_timeout(300)
    assert SIGN not in site.asked
