"""Rounded models on targets other than this machine: in a browser, and on a board's own core under emulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from bundler.devices.emulation import find_emulator
from tests.support import digits, models
from tests.support.browser import provide_browser
from tests.support.command_line import CommandLine
from tests.support.digits import Network
from tests.support.documents import read_document

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def chromium() -> Path:
    """The machine's browser, installed where it may be; else the test is skipped and says what is missing."""
    found = provide_browser()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both trained networks and one of plain matrix products, with data to calibrate with and to judge by."""
    folder = tmp_path_factory.mktemp("targets")
    train, held_out = digits.load_digits()
    networks: tuple[Network, ...] = ("perceptron", "convolutional")
    for network in networks:
        digits.write_network(network, folder)
        digits.write_samples(train.part(40), folder / network / "calibration", network)
        digits.write_samples(held_out.part(40), folder / network / "samples", network)
    models.save(models.mlp(width=64, hidden=256, out=10), folder, "digits-plain.onnx")
    (folder / "plain").symlink_to(folder / "perceptron", target_is_directory=True)
    return folder


def build(bundler: CommandLine, workplace: Path, network: str, *options: str | Path, output: Path) -> dict[str, Any]:
    data = [f"--{name}={workplace / network / name}" for name in ("calibration", "samples")]
    model = workplace / f"digits-{network}.onnx"
    answer = bundler.run("build", model, *data, *options, "--output", output, "--json", timeout=500)
    (built,) = answer.expect(0).document["bundles"]
    manifest = read_document(Path(built["bundle"]) / "bundle.json")
    return {**built, "manifest": manifest, "err": answer.err}


@pytest.mark.parametrize("case", [("perceptron", "dynamic-int8"), ("convolutional", "static-int8")], ids="-".join)
def test_eight_bits_are_executed_in_the_browser(
    bundler: CommandLine, workplace: Path, chromium: Path, tmp_path: Path, case: tuple[Network, str]
) -> None:
    network, method = case
    asked = ("--target=web-wasm", f"--set=precision.method={method}", "--on", f"browser:{chromium}")
    built = build(bundler, workplace, network, *asked, output=tmp_path)
    assert built["proof"] == "executed"
    assert built["model_bytes"] < built["source_bytes"] * 0.8
    (variant,) = built["manifest"]["proof"]["variants"]
    assert (variant["variant"], variant["level"]) == ("wasm", "executed")


@pytest.mark.slow
def test_four_bit_weights_run_on_the_gpu_and_eight_bits_beside_them(
    bundler: CommandLine, workplace: Path, chromium: Path, tmp_path: Path
) -> None:
    """Each variant has the precision that suits its provider, and a gate of its own."""
    each = ("--set=variants.webgpu.precision=weights-4bit", "--set=variants.wasm.precision=dynamic-int8")
    asked = ("--target=web-webgpu", *each, "--on", f"browser:{chromium}")
    built = build(bundler, workplace, "plain", *asked, output=tmp_path)
    proofs = {variant["variant"]: variant for variant in built["manifest"]["proof"]["variants"]}
    assert proofs["wasm"]["level"] == "executed"
    if proofs["webgpu"]["passed"] is None:
        pytest.skip(f"this browser offers no WebGPU: {proofs['webgpu']['reason']}")
    assert built["proof"] == "executed"
    stages = {step["stage"] for step in built["manifest"]["stages"]}
    assert {"quantize_weights", "quantize_dynamic"} <= stages


@pytest.mark.slow
def test_half_precision_is_claimed_only_where_the_gpu_computes_in_it(
    bundler: CommandLine, workplace: Path, chromium: Path, tmp_path: Path
) -> None:
    asked = ("--target=web-webgpu", "--set=variants.webgpu.precision=fp16", "--on", f"browser:{chromium}")
    built = build(bundler, workplace, "convolutional", *asked, output=tmp_path)
    bundle = Path(built["bundle"])
    nodes = onnx.load(bundle / "payload" / "models" / "webgpu" / "model.onnx").graph.node
    assert [node.op_type for node in nodes].count("Cast") <= 2, "baking must not turn the arithmetic into 32 bits"
    (gpu, cpu) = read_document(bundle / "payload" / "runtime.json")["variants"]
    assert (gpu["requires"]["features"], cpu["requires"]["features"]) == (["shader-f16"], [])
    proofs = {variant["variant"]: variant for variant in built["manifest"]["proof"]["variants"]}
    assert proofs["wasm"]["level"] == "executed"
    if proofs["webgpu"]["passed"] is None:
        assert "shader-f16" in proofs["webgpu"]["reason"] or "WebGPU" in proofs["webgpu"]["reason"]
        assert built["proof"] == "resolved"
        assert f"webgpu not run: {proofs['webgpu']['reason']}" in built["err"]
    else:
        assert built["proof"] == "executed"


@pytest.mark.slow
@pytest.mark.skipif(
    find_emulator("aarch64") is None, reason="QEMU's user emulation is not here: install qemu-user-static"
)
@pytest.mark.parametrize("method", ["static-int8", "weights-4bit"])
def test_a_rounded_model_runs_on_the_core_of_a_board(
    bundler: CommandLine, workplace: Path, tmp_path: Path, method: str
) -> None:
    network: Network = "convolutional" if method == "static-int8" else "perceptron"
    asked = ("--target=raspberry-pi-5", f"--set=precision.method={method}")
    built = build(bundler, workplace, network, *asked, output=tmp_path)
    assert built["proof"] == "emulated"
    assert built["model_bytes"] < built["source_bytes"] * 0.8
