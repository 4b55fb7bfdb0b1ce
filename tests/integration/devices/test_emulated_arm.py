"""The CPU variants of Arm boards with accelerators, run in emulation of the nearest core. Times mean nothing there."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundler.devices.emulation import find_emulator
from tests.support.command_line import ONE_PYTHON, CommandLine
from tests.support.documents import read_document
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
