"""The CPU variants of Arm boards with accelerators, run in emulation of the nearest core. Times mean nothing there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from bundler.devices.emulation import find_emulator
from tests.support import models
from tests.support.command_line import ONE_PYTHON, CommandLine
from tests.support.documents import read_document
from tests.support.encoders import encoder, sentences
from tests.support.real_models import fetch_example

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        find_emulator("aarch64") is None, reason="QEMU's user emulation is not here: install qemu-user-static"
    ),
]

BOARDS = {
    "jetson-orin": ["tensorrt", "cuda"],
    "jetson-xavier": ["tensorrt", "cuda"],
    "jetson-nano": ["tensorrt", "cuda"],
    "rockchip-rk3588": ["npu", "acl"],
}
"""What only a runtime of the user's own build has on them, and so is left out."""


@pytest.mark.parametrize("target", BOARDS)
def test_a_board_without_its_makers_runtime_runs_on_its_cpu(bundler: CommandLine, tmp_path: Path, target: str) -> None:
    model = fetch_example("text_orientation", tmp_path / "orientation.onnx")
    arguments = (model, "--target", target, "--set", ONE_PYTHON, "--output", tmp_path / "out")
    answer = bundler.run("build", *arguments, "--json", timeout=500).expect(0)
    (built,) = answer.document["bundles"]
    assert built["proofs"] == {"cpu": "emulated"}
    manifest = read_document(Path(built["bundle"]) / "bundle.json")
    left_out = {row["subject"]: row["reason"] for row in manifest["decisions"] if row["choice"] == "left out"}
    assert list(left_out) == [f"variant {name}" for name in BOARDS[target]]
    assert all(left_out.values())
    verified = bundler.run("verify", built["bundle"], "--json", timeout=500).expect(0).document
    assert (verified["proof"], verified["claimed"]) == ("emulated", "emulated")


HALF_CORE = "qemu-aarch64:cortex-a76"
"""A core that computes in half precision, as those of phones and of Raspberry Pi 5; a cortex-a53 does not."""


def leaving_half() -> ModelProto:
    """A model in half precision in which one sum is out of range, and the next product brings it back."""
    nodes = [
        helper.make_node("Mul", ["x", "big"], ["far"]),
        helper.make_node("Add", ["far", "far"], ["out"]),
        helper.make_node("Mul", ["out", "small"], ["y"]),
    ]
    numbers = {"big": 40000, "small": 0.0001}
    weights = tuple(numpy_helper.from_array(np.array([value], np.float16), name) for name, value in numbers.items())
    x, y = (models.value(name, ["n", 16], TensorProto.FLOAT16) for name in "xy")
    return models.make_model(nodes, [x], [y], weights)


def test_half_precision_is_run_where_a_core_computes_in_it(bundler: CommandLine, tmp_path: Path) -> None:
    """A processor without half precision computes in single, where the sum is in range. As bundler optimises a model,
    the cores that have it do so too; as it was written, they overflow, and the bundle is refused.
    """
    model = models.save(leaving_half(), tmp_path)
    arguments = (model, "--set", ONE_PYTHON, "--on", HALF_CORE, "--json", "--output", tmp_path / "out")
    answer = bundler.run("build", *arguments, "--target", "linux-arm64", timeout=500).expect(0)
    assert answer.document["bundles"][0]["proofs"] == {"cpu": "emulated"}
    written = ("--set", "optimization.level=none")
    refused = bundler.run("build", *arguments, *written, "--target", "linux-arm64", timeout=500).expect(8)
    assert "infinity is at other positions" in refused.err


def test_an_encoder_in_half_precision_reproduces_long_and_padded_texts_there(
    bundler: CommandLine, tmp_path: Path
) -> None:
    model = models.save(encoder(positions=256), tmp_path)
    samples = tmp_path / "samples"
    samples.mkdir()
    for index, (batch, length) in enumerate([(1, 256), (4, 200), (2, 16)]):
        np.savez(samples / f"{index}.npz", **sentences(batch, length, seed=index))
    arguments = (model, "--target", "raspberry-pi-5", "--set", ONE_PYTHON, "--samples", samples)
    half = ("--set", "precision.method=fp16", "--json", "--output", tmp_path / "out")
    answer = bundler.run("build", *arguments, *half, timeout=500).expect(0)
    assert answer.document["bundles"][0]["proofs"] == {"cpu": "emulated"}
