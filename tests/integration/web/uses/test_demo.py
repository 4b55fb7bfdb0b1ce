"""The demo page: a person opens it, sees that the model works and how it runs here, and tries it without code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from tests.support.web_host import Host, host, missing
from tests.support.web_pages import Visitor, visitor


@pytest.fixture
def demo(browser: Browser, webgpu_bundle: Path) -> Iterator[Visitor]:
    with host(webgpu_bundle) as site, visitor(browser, viewport={"width": 1280, "height": 1400}) as found:
        yield found.visit(site, "/demo/index.html")


def test_person_sees_that_it_works_runs_it_and_gives_a_picture(demo: Visitor, tmp_path: Path) -> None:
    page = demo.page
    expect(page.locator("#test")).to_contain_text("Passed", timeout=90_000)
    assert page.locator("#model").text_content() == "model"
    expect(page.locator("#load")).to_contain_text("Ready")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#outputs")).to_contain_text("scores", timeout=30_000)
    recorded = page.locator("#outputs").inner_text()

    Image.new("RGB", (64, 48), (200, 30, 90)).save(tmp_path / "picture.png")
    page.get_by_label("Picture").check()
    page.locator("#inputs input[type=file]").first.set_input_files(tmp_path / "picture.png")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#outputs")).not_to_have_text(recorded, timeout=30_000)

    page.screenshot(path=tmp_path / "demo.png", full_page=True)
    assert (tmp_path / "demo.png").stat().st_size > 10_000
    assert demo.complaints == []


def test_page_says_why_it_fell_back(bare_browser: Browser, webgpu_bundle: Path) -> None:
    with host(webgpu_bundle) as site, visitor(bare_browser) as found:
        page = found.visit(site, "/demo/index.html").page
        expect(page.locator("#test")).to_contain_text("Passed", timeout=60_000)
        expect(page.locator("#runs")).to_contain_text("wasm")
        expect(page.locator("#runs")).to_contain_text("WebGPU")
        # Chromium's own words, whoever asks for a GPU.
        assert set(found.complaints) <= {"warning: No available adapters."}


def test_page_shows_what_went_wrong_and_what_to_do(browser: Browser, wasm_host: Host) -> None:
    wasm_host.faults["/payload/models/wasm/model.onnx.000"] = missing
    with visitor(browser) as found:
        page = found.visit(wasm_host, "/demo/index.html").page
        expect(page.locator("#failure")).to_contain_text("model.onnx", timeout=60_000)
        expect(page.locator("#failure")).to_contain_text("missing")
        expect(page.locator("#failure")).to_contain_text("again")
