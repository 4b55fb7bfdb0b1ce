"""Arm bundles of a real model, run under emulation of the boards' own cores. Times there mean nothing; answers do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bundler.devices.emulation import find_emulator
from tests.support.command_line import CommandLine
from tests.support.real_models import fetch_example

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        find_emulator("aarch64") is None, reason="QEMU's user emulation is not here: install qemu-user-static"
    ),
]


@pytest.mark.parametrize("target", ["raspberry-pi-4", "raspberry-pi-5", "linux-arm64"])
def test_a_bundle_for_arm_reproduces_its_golden_set_on_the_boards_core(
    bundler: CommandLine, tmp_path: Path, target: str
) -> None:
    model = fetch_example("text_orientation", tmp_path / "orientation.onnx")
    built = bundler.run("build", model, "--target", target, "--output", tmp_path / "out", "--json", timeout=500)
    (bundle,) = built.expect(0).document["bundles"]
    assert bundle["proof"] == "emulated"
    manifest = json.loads((Path(bundle["bundle"]) / "bundle.json").read_text())
    (variant,) = manifest["proof"]["variants"]
    assert variant["level"] == "emulated"
    assert (variant["ran_on"]["device"], variant["ran_on"]["system"]) == ("qemu-aarch64", "Linux")
    assert variant["place"] == f"under emulation of {variant['ran_on']['processor']}"
    verified = bundler.run("verify", bundle["bundle"], "--json", timeout=500).expect(0).document
    assert (verified["proof"], verified["claimed"]) == ("emulated", "emulated")
    on = ("--on", "qemu-aarch64:cortex-a53")
    assert "under emulation of cortex-a53" in bundler.run("verify", bundle["bundle"], *on, timeout=500).expect(0).out
    untimed = bundler.run("bench", bundle["bundle"], *on).expect(8)
    assert "not timed: times under emulation of cortex-a53 do not predict times on the device" in untimed.err
    assert (
        "the bundle is for Linux on aarch64" in bundler.run("verify", bundle["bundle"], "--on", "local").expect(2).err
    )
