"""The demo page: a person opens it, sees that the model works and how it runs here, and tries it without code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from onnx import helper
from PIL import Image
from playwright.sync_api import Browser, expect

from tests.support import models
from tests.support.command_line import CommandLine
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


def test_a_click_on_run_right_after_a_size_was_typed_is_not_lost(
    bundler: CommandLine, browser: Browser, tmp_path: Path
) -> None:
    """The click takes the focus from the field; what is shown must not move under the pointer then."""
    nodes = [helper.make_node("GlobalAveragePool", ["image"], ["means"])]
    sizes = ["batch", 3, "height", "width"]
    model = models.make_model(nodes, [models.value("image", sizes)], [models.value("means", ["batch", 3, 1, 1])])
    path = models.save(model, tmp_path, "means.onnx")
    built = bundler.build(path, "--target=web-wasm", "--no-prove", f"--output={tmp_path / 'out'}")
    Image.new("RGB", (240, 60), (200, 30, 90)).save(tmp_path / "picture.png")
    with host(Path(built["bundle"])) as site, visitor(browser, viewport={"width": 1280, "height": 1400}) as found:
        page = found.visit(site, "/demo/index.html").page
        expect(page.locator("#test")).to_contain_text("Passed", timeout=60_000)
        page.get_by_label("Picture").check()
        page.locator("#inputs input[type=file]").first.set_input_files(tmp_path / "picture.png")
        for label, size in (("Height", "48"), ("Width", "192")):
            page.get_by_label(label, exact=True).fill(size)
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.locator("#outputs")).to_contain_text("means", timeout=30_000)


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
