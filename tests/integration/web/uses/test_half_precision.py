"""A variant in half precision on a page whose GPU does not compute in it."""

from __future__ import annotations

from pathlib import Path

from tests.support.command_line import CommandLine
from tests.support.web_host import host
from tests.support.web_pages import Visitor

from .conftest import build


def test_a_gpu_without_half_precision_is_passed_over_and_the_reason_reported(
    guest: Visitor, bundler: CommandLine, tiny_model: Path, tmp_path: Path
) -> None:
    model = tmp_path / "half.onnx"
    model.write_bytes(tiny_model.read_bytes())
    bundle = build(bundler, model, "web-webgpu", "--set", "variants.webgpu.precision=fp16")
    with host(bundle) as site:
        states = guest.visit(site).value("return probe();")
        capable = guest.value(
            "const adapter = await navigator.gpu?.requestAdapter();return Boolean(adapter?.features.has('shader-f16'));"
        )
        assert states[0]["available"] is capable
        found = guest.value(
            "const model = await load(); return { report: model.report, test: await model.selfTest() };"
        )
        assert found["test"]["passed"], found["test"]
        if capable:
            assert found["report"]["variant"] == "webgpu"
            return
        assert (found["report"]["variant"], found["report"]["fellBack"]) == ("wasm", True)
        reason = found["report"]["rejected"]["webgpu"]
        assert reason == states[0]["reason"]
        assert "shader-f16" in reason or "WebGPU" in reason
        assert not [path for path in site.asked if "models/webgpu" in path], "nothing of what cannot run is fetched"
