"""WebGPU, by the browser's software adapter: it runs, its results stay on the GPU; its absence or loss is reported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.command_line import CommandLine
from tests.support.web_host import Host, host
from tests.support.web_pages import Visitor, visitor

from .conftest import build

RUN = "const { scores } = await model.run({ image: new Float32Array(3 * 16 * 16).fill(0.5) });"


@pytest.fixture
def webgpu_host(webgpu_bundle: Path) -> Iterator[Host]:
    with host(webgpu_bundle) as site:
        yield site


@pytest.mark.quick
def test_model_runs_on_the_gpu_and_its_outputs_stay_there_when_asked(guest: Visitor, webgpu_host: Host) -> None:
    states = guest.visit(webgpu_host).value("return probe();")
    if not states[0]["available"]:
        pytest.skip(f"this browser offers no WebGPU: {states[0]['reason']}")
    assert webgpu_host.data_asked == {}
    assert [(state["name"], state["available"]) for state in states] == [("webgpu", True), ("wasm", True)]
    found = guest.value(f"""
      const model = await load({{ keepOnDevice: true }});
      {RUN}
      const place = scores.location;
      const near = await scores.getData();
      const sum = near.reduce((total, value) => total + value, 0);
      const test = await model.selfTest();
      const report = model.report;
      await model.dispose();
      return {{ place, sum, test, report }};
    """)
    assert found["place"] == "gpu-buffer"
    assert found["sum"] == pytest.approx(1, abs=1e-3)
    assert found["test"]["passed"], found["test"]
    report = found["report"]
    assert (report["variant"], report["fellBack"], report["rejected"]) == ("webgpu", False, {})
    assert report["softwareAdapter"] is True
    assert any("software" in note for note in report["notes"])


def test_lost_gpu_is_reported_and_a_new_load_gets_another(guest: Visitor, webgpu_host: Host) -> None:
    if not guest.visit(webgpu_host).value("return probe();")[0]["available"]:
        pytest.skip("this browser offers no WebGPU")
    guest.context.add_init_script("""
      globalThis.devices = [];
      const request = GPUAdapter.prototype.requestDevice;
      GPUAdapter.prototype.requestDevice = async function (...given) {
        const device = await request.apply(this, given);
        globalThis.devices.push(device);
        return device;
      };
    """)
    error = guest.visit(webgpu_host).error(f"""
      globalThis.model = await load();
      {RUN}
      await scores.getData();
      for (const device of globalThis.devices) device.destroy();
      await globalThis.devices[0].lost;
      return model.run({{ image: new Float32Array(3 * 16 * 16) }});
    """)
    assert error["name"] == "DeviceLostError"
    assert "load" in error["hint"]
    assert guest.error("return model.selfTest();")["name"] == "DeviceLostError"
    assert guest.value("await model.dispose(); return (await (await load()).selfTest()).passed;") is True


def test_browser_without_webgpu_falls_back_and_says_why(bare_browser: Browser, webgpu_host: Host) -> None:
    with visitor(bare_browser) as found:
        states = found.visit(webgpu_host).value("return probe();")
        assert [(state["name"], state["available"]) for state in states] == [("webgpu", False), ("wasm", True)]
        assert "WebGPU" in states[0]["reason"]
        report = found.value("return (await load()).report;")
        assert (report["variant"], report["fellBack"]) == ("wasm", True)
        assert report["rejected"] == {"webgpu": states[0]["reason"]}
        # Nothing of what cannot run was downloaded.
        assert not [path for path in webgpu_host.asked if "jspi" in path or "asyncify" in path or "webgpu" in path]


def test_strict_mode_takes_no_fallback(bare_browser: Browser, webgpu_host: Host) -> None:
    with visitor(bare_browser) as found:
        error = found.visit(webgpu_host).error("return load({ strict: true });")
        assert error["name"] == "FallbackError"
        assert "WebGPU" in error["why"]
        assert "strict" in error["hint"]
        assert webgpu_host.data_asked == {}
        only = found.error("return load({ variant: 'webgpu' });")
        assert only["name"] == "IncompatibleError"
        assert "WebGPU" in only["message"] + only["why"]


def test_browser_without_stack_switching_takes_the_other_build(guest: Visitor, webgpu_host: Host) -> None:
    guest.context.add_init_script("delete WebAssembly.Suspending; delete WebAssembly.promising;")
    if not guest.visit(webgpu_host).value("return probe();")[0]["available"]:
        pytest.skip("this browser offers no WebGPU")
    found = guest.value("const model = await load(); return { test: await model.selfTest(), report: model.report };")
    assert (found["report"]["variant"], found["report"]["build"]) == ("webgpu", "asyncify")
    assert found["test"]["passed"], found["test"]


def test_bundle_for_webnn_takes_the_best_that_is_there(guest: Visitor, bundler: CommandLine, tiny_model: Path) -> None:
    bundle = build(bundler, tiny_model, "web-webnn")
    with host(bundle) as site:
        states = guest.visit(site).value("return probe();")
        assert [state["name"] for state in states] == ["webnn", "webgpu", "wasm"]
        if states[0]["available"]:
            pytest.skip("this browser has WebNN: nothing to fall back from")
        report = guest.value("return (await load()).report;")
        expected = next(state["name"] for state in states if state["available"])
        assert (report["variant"], report["fellBack"]) == (expected, True)
        assert "WebNN" in report["rejected"]["webnn"]
