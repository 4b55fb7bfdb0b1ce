"""An application made with Vite, built, previewed and in development, and one made with esbuild."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from bundler.devices.browser.headers import ISOLATION
from tests.support.javascript import find_tool, run, serving
from tests.support.web_host import host
from tests.support.web_pages import Visitor, visitor

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>app</title><link rel="icon" href="data:,">
<p id="answer"></p><script type="module" src="/main.js"></script></html>
"""

MAIN = """
import { load } from "model";
import { selfTest } from "model/self-test";

const place = document.querySelector("#answer");
const answer = async () => {
  const model = await load({ threads: 2 });
  if (location.search) return model.selfTest().catch(({ name, hint }) => ({ name, hint }));
  const { scores } = await model.run({ image: new Float32Array(3 * 16 * 16) });
  const sum = scores.data.reduce((total, value) => total + value, 0);
  return { report: model.report, test: await selfTest(model), sum };
};
const reported = await answer().catch(String);
place.textContent = JSON.stringify(reported);
place.dataset.done = "yes";
"""


@pytest.fixture(scope="module")
def vite_app(app: Path) -> Path:
    headers = json.dumps(dict(ISOLATION))
    config = f"const headers = {headers};\nexport default {{ server: {{ headers }}, preview: {{ headers }} }};\n"
    for name, text in {"index.html": PAGE, "main.js": MAIN, "vite.config.js": config}.items():
        (app / name).write_text(text, "utf-8")
    return app


@pytest.fixture(scope="module")
def vite() -> tuple[str, ...]:
    return find_tool("vite/bin/vite.js")


@pytest.fixture(scope="module")
def built(vite_app: Path, vite: tuple[str, ...]) -> Path:
    run((*vite, "build", "--logLevel", "warn"), vite_app)
    return vite_app / "dist"


def answer(found: Visitor, address: str) -> dict[str, Any]:
    """What the application shows in the end; a development server may load the page again before."""
    found.page.goto(address)
    found.page.wait_for_selector("#answer[data-done]", state="attached", timeout=60_000)
    reported = json.loads(found.page.locator("#answer").text_content() or "null")
    assert isinstance(reported, dict), reported
    assert reported["test"]["passed"], reported["test"]
    assert reported["sum"] == pytest.approx(1, abs=1e-5)
    report: dict[str, Any] = reported["report"]
    return report


def test_built_application_works_isolated_or_not_under_the_documented_policy(browser: Browser, built: Path) -> None:
    for isolated, threads in ((True, 2), (False, 1)):
        with host(built, isolated=isolated) as site, visitor(browser) as found:
            report = answer(found, site.url + "/index.html")
            assert (report["crossOriginIsolated"], report["threads"]) == (isolated, threads)
            assert found.complaints == []
            assert answer(found, site.url + "/index.html")["fromCache"] is True


def test_a_built_model_names_the_import_with_the_golden_set(browser: Browser, built: Path) -> None:
    with host(built) as site, visitor(browser) as found:
        found.page.goto(site.url + "/index.html?own")
        found.page.wait_for_selector("#answer[data-done]", state="attached", timeout=60_000)
        fault = json.loads(found.page.locator("#answer").text_content() or "null")
    assert fault["name"] == "DownloadError"
    assert 'import { selfTest } from "model/self-test" and call selfTest(model)' in fault["hint"]


BUNDLED = """
import { load } from "model/wasm";

const place = document.querySelector("#answer");
const answer = async () => {
  const model = await load({ base: "/model/" });
  return (await model.run({ image: new Float32Array(3 * 16 * 16) })).scores.dims;
};
place.textContent = await answer().then(String, String);
place.dataset.done = "yes";
"""


def test_esbuild_bundles_the_import_of_one_variant_beside_its_files(
    browser: Browser, app: Path, tmp_path: Path
) -> None:
    """As the package's README says: esbuild copies none of its files."""
    tool = find_tool("esbuild/bin/esbuild")
    (app / "bundled.js").write_text(BUNDLED, "utf-8")
    run((*tool, "bundled.js", "--bundle", "--format=esm", f"--outfile={tmp_path / 'main.js'}"), app)
    (tmp_path / "index.html").write_text(PAGE, "utf-8")
    for name in ("vendor", "payload"):
        shutil.copytree(app / "node_modules" / "model" / name, tmp_path / "model" / name)
    with host(tmp_path) as site, visitor(browser) as found:
        found.page.goto(site.url + "/index.html")
        found.page.wait_for_selector("#answer[data-done]", state="attached", timeout=60_000)
        assert found.page.locator("#answer").text_content() == "1,5"


@pytest.fixture(params=["preview", "dev"])
def vite_server(request: pytest.FixtureRequest, built: Path, vite_app: Path, vite: tuple[str, ...]) -> Iterator[str]:
    assert built.is_dir()
    with serving((*vite, request.param, "--host", "127.0.0.1", "--port", "0"), vite_app) as address:
        yield address


def test_servers_of_vite_work(browser: Browser, vite_server: str) -> None:
    with visitor(browser) as found:
        report = answer(found, vite_server)
        assert (report["crossOriginIsolated"], report["threads"]) == (True, 2)


def test_file_that_was_not_deployed_is_missing_though_the_server_answers(browser: Browser, built: Path) -> None:
    """Preview servers answer with the start page for whatever they do not have."""
    (model,) = [path for path in built.rglob("*.onnx") if path.is_file()]
    content = model.read_bytes()
    model.write_bytes(content[:-1])
    try:
        with host(built) as site, visitor(browser) as found:
            found.page.goto(site.url + "/index.html")
            found.page.wait_for_selector("#answer[data-done]", state="attached")
            assert "IntegrityError" in (found.page.locator("#answer").text_content() or "")
    finally:
        model.write_bytes(content)
