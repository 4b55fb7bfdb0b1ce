"""A bundle of several components in a real browser and in Node.js: built and verified by the real command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.support import models
from tests.support.command_line import CommandLine
from tests.support.javascript import find_node, run
from tests.support.web_host import Host, host, missing
from tests.support.web_pages import Visitor, visitor


@pytest.fixture(scope="module")
def built(bundler: CommandLine, chromium: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    del chromium  # Verifying finds it by itself, where it is installed.
    folder = tmp_path_factory.mktemp("several")
    detect, read = models.save(models.cnn(), folder, "det.onnx"), models.save(models.mlp(), folder, "rec.onnx")
    return bundler.build(
        f"detect={detect}", f"read={read}", "--bundle=ocr", "--target=web-wasm", f"--output={folder / 'out'}"
    )


@pytest.fixture
def site(built: dict[str, Any]) -> Iterator[Host]:
    with host(Path(built["bundle"])) as served:
        yield served


RUN = """
const { load } = await import("/index.js");
const bundle = await load();
const test = await bundle.selfTest();
const { y } = await bundle.read.run({ x: { data: new Float32Array(8), dims: [1, 8] } });
const found = { passed: test.passed, tested: Object.keys(test.components), dims: y.dims,
  variants: Object.fromEntries(Object.entries(bundle.report).map(([name, { variant }]) => [name, variant])) };
await bundle.close();
found.closed = await bundle.detect.run({}).catch((error) => error.name);
"""


def test_every_component_was_verified(built: dict[str, Any]) -> None:
    manifest = json.loads((Path(built["bundle"]) / "bundle.json").read_text("utf-8"))
    proofs = [(one["component"], one["variant"], one["level"]) for one in manifest["proof"]["variants"]]
    assert proofs == [("detect", "wasm", "executed"), ("read", "wasm", "executed")]


def test_a_page_runs_all_components_on_one_runtime(guest: Visitor, site: Host) -> None:
    guest.visit(site)
    found = guest.page.evaluate(f"async () => {{ {RUN} return found; }}")
    assert found == {
        "passed": True,
        "tested": ["detect", "read"],
        "dims": [1, 4],
        "variants": {"detect": "wasm", "read": "wasm"},
        "closed": "DisposedError",
    }
    assert [count for path, count in site.data_asked.items() if path.endswith(".wasm")] == [1]


def test_a_file_that_is_missing_is_said_with_its_component(guest: Visitor, site: Host) -> None:
    (model,) = (Path(site.folder) / "payload" / "models" / "read").rglob("*.onnx")
    site.faults[f"/{model.relative_to(site.folder).as_posix()}"] = missing
    code = 'const { load } = await import("/index.js"); return load().catch((error) => error.message);'
    assert str(guest.visit(site).page.evaluate(f"async () => {{ {code} }}")).startswith("read: ")
    code = 'const { load } = await import("/index.js"); return Object.keys((await load({ only: ["detect"] })).report);'
    assert guest.page.evaluate(f"async () => {{ {code} }}") == ["detect"]


def test_node_runs_them(built: dict[str, Any], tmp_path: Path) -> None:
    entry = json.dumps((Path(built["bundle"]) / "node.js").as_uri())
    code = RUN.replace('"/index.js"', entry) + "console.log(JSON.stringify(found));"
    assert json.loads(run((find_node(), "--input-type=module", "-e", code), tmp_path))["passed"]


def test_the_demo_shows_one_component_at_a_time(browser: Browser, site: Host, tmp_path: Path) -> None:
    with visitor(browser, viewport={"width": 1280, "height": 1000}) as found:
        page = found.visit(site, "/demo/index.html").page
        expect(page.locator("#test")).to_contain_text("Passed", timeout=60_000)
        expect(page.locator("#model")).to_have_text("det")
        page.get_by_role("link", name="read", exact=True).click()
        expect(page.locator("#test")).to_contain_text("Passed", timeout=60_000)
        expect(page.get_by_role("link", name="read", exact=True)).to_have_attribute("aria-current", "page")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.locator("#run-bar")).to_contain_text("Finished", timeout=30_000)
        page.screenshot(path=tmp_path / "demo.png", full_page=True)
        assert found.complaints == []


TOGETHER = """
targets = ["web-webgpu"]

[[bundles]]
name = "ocr"
together = ["detect", "read"]
models.detect.path = "det.onnx"
models.read.path = "rec.onnx"
"""

REPORT = """
const { load } = await import("/index.js");
const bundle = await load();
const test = await bundle.selfTest();
const found = Object.fromEntries(Object.entries(bundle.report).map(([name, { variant }]) => [name, variant]));
await bundle.close();
return [test.passed, found];
"""


@pytest.fixture(scope="module")
def coupled(bundler: CommandLine, chromium: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two components that take the variant of one name, for WebGPU and the CPU."""
    del chromium  # Verifying finds it by itself, where it is installed.
    folder = tmp_path_factory.mktemp("together")
    models.save(models.cnn(), folder, "det.onnx")
    models.save(models.mlp(), folder, "rec.onnx")
    (folder / "bundler.toml").write_text(TOGETHER)
    CommandLine(cache=bundler.cache, env=bundler.env, cwd=folder).run("build", "--no-prove", timeout=300).expect(0)
    return folder / "dist" / "ocr-web-webgpu"


def test_components_that_belong_together_take_one_variant(guest: Visitor, coupled: Path) -> None:
    with host(coupled) as site:
        found = guest.visit(site).page.evaluate(f"async () => {{ {REPORT} }}")
    assert found == [True, {"detect": "webgpu", "read": "webgpu"}]


def test_without_webgpu_they_all_take_the_next(bare_browser: Browser, coupled: Path) -> None:
    with host(coupled) as site, visitor(bare_browser) as found:
        assert found.visit(site).page.evaluate(f"async () => {{ {REPORT} }}") == [
            True,
            {"detect": "wasm", "read": "wasm"},
        ]


def test_a_missing_file_of_one_is_an_error_of_all(guest: Visitor, coupled: Path) -> None:
    """An incomplete bundle is no reason to fall back."""
    with host(coupled) as site:
        (model,) = (coupled / "payload" / "models" / "read" / "webgpu").glob("*.onnx")
        site.faults[f"/{model.relative_to(coupled).as_posix()}"] = missing
        code = 'const { load } = await import("/index.js"); return load().catch((error) => error.message);'
        said = guest.visit(site).page.evaluate(f"async () => {{ {code} }}")
    assert said == "read: payload/models/read/webgpu/model.onnx is missing on the server"
