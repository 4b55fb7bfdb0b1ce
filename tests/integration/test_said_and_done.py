"""What a build says is what it did: variants left out, sizes that the target fixed, what was verified and where."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest

from tests.support import models
from tests.support.command_line import CommandLine
from tests.support.documents import read_document

FILES = ("--format", "files")
"""A bundle of files downloads nothing."""


@pytest.fixture
def mlp(tmp_path: Path) -> Path:
    return models.save(models.mlp(), tmp_path / "in", "mlp.onnx")


def read(bundle: Path, name: str) -> Any:
    return read_document(bundle / name)


def test_variants_that_are_left_out_are_reported_before_any_step_and_in_the_readme(
    warm: CommandLine, mlp: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    said = warm.run("build", mlp, "--target", "jetson-orin", *FILES, "--no-prove", "--output", out).expect(0).err
    first, second, *_ = said.splitlines()
    assert first.startswith("jetson-orin: warning: variant tensorrt of the target is left out of the bundle: ")
    assert second.startswith("jetson-orin: warning: variant cuda of the target is left out of the bundle: ")
    bundle = out / "mlp-jetson-orin"
    readme = (bundle / "README.md").read_text("utf-8")
    assert "These variants of the target are not in this bundle:\n\n- variant tensorrt: it requires" in readme
    assert [variant["name"] for variant in read(bundle, "runtime.json")["variants"]] == ["cpu"]
    decisions = {item["subject"]: item["choice"] for item in read(bundle, "bundle.json")["decisions"]}
    assert decisions["variant tensorrt"] == decisions["variant cuda"] == "left out"


def test_a_size_of_the_target_is_reported_as_the_targets_everywhere(
    warm: CommandLine, mlp: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    said = warm.run("build", mlp, "--target", "android-arm64", *FILES, "--no-prove", "--output", out).expect(0).err
    note = next(line for line in said.splitlines() if "fixes batch = 1" in line)
    assert "mlp → android-arm64: the target android-arm64 fixes batch = 1" in note
    assert "--dim batch=N" in note
    assert said.index(note) < said.index("Record the golden set")
    bundle = out / "mlp-android-arm64"
    assert read(bundle, "runtime.json")["fixed_sizes"] == [
        {"axes": {"x": [0]}, "by": "target", "name": "batch", "size": 1}
    ]
    assert "this bundle fixes them: batch = 1, fixed by the target." in (bundle / "README.md").read_text("utf-8")
    decisions = {item["subject"]: item["reason"] for item in read(bundle, "bundle.json")["decisions"]}
    assert decisions["dimension batch"] == "fixed by the target"


@pytest.mark.parametrize("given", [("--dim", "batch=2"), ("--set", "dimensions.batch=2")])
def test_a_size_of_the_users_is_not_reported_as_the_targets(
    warm: CommandLine, mlp: Path, tmp_path: Path, given: tuple[str, str]
) -> None:
    target = ("--target", "android-arm64", *FILES, "--no-prove", "--output", tmp_path / "out")
    said = warm.run("build", mlp, *target, *given).expect(0).err
    assert "the target android-arm64 fixes" not in said
    (size,) = read(tmp_path / "out" / "mlp-android-arm64", "runtime.json")["fixed_sizes"]
    assert (size["size"], size["by"]) == (2, "user")


@pytest.mark.quick
def test_the_readme_says_what_was_verified_and_matches_its_checksum(
    warm: CommandLine, mlp: Path, tmp_path: Path
) -> None:
    """It is changed after the proof, so the manifest must have the file as it is in the end."""
    answer = warm.run("build", mlp, "--target", "linux-x64", *FILES, "--output", tmp_path).expect(0)
    assert "\n  Stand-in  cpu: ran on this host in place of the device\n" in answer.out
    bundle = tmp_path / "mlp-linux-x64"
    readme = (bundle / "README.md").read_text("utf-8")
    host = f"{platform.system()} on {platform.machine()}".replace("_", "\\_")
    assert (
        f"## What was verified\n\n- Stand-in: cpu: ran on the host that built it in place of the device ({host})\n"
        in readme
    )
    verified = warm.run("verify", bundle).expect(0).out
    assert f"{bundle}: {len(read(bundle, 'bundle.json')['files'])} files match their checksums\n" in verified
    assert "\n  Stand-in  cpu: ran on this host in place of the device\n" in verified
    assert "When it was built" not in verified, "it reached the same"


def test_a_bundle_that_was_not_run_says_so_until_somebody_runs_it(warm: CommandLine, mlp: Path, tmp_path: Path) -> None:
    nothing = "the bundle was built without verification (--no-prove)"
    target = ("--target", "linux-x64", *FILES, "--no-prove", "--output", tmp_path)
    assert f"\n  Not run   {nothing}\n" in warm.run("build", mlp, *target).expect(0).out
    bundle = tmp_path / "mlp-linux-x64"
    shown = nothing.replace("_", "\\_")
    assert f"## What was verified\n\n- Not run: {shown}\n" in (bundle / "README.md").read_text("utf-8")
    verified = warm.run("verify", bundle).expect(0).out
    assert f"\n  When it was built:\n  Not run   {nothing}\n" in verified
    assert "\n  Stand-in  cpu: ran on this host" in verified


def test_a_plan_shows_what_must_be_on_the_device(warm: CommandLine, mlp: Path) -> None:
    out = warm.run("plan", mlp, "--target", "a100").expect(0).out
    assert "requirements on the device (not in the bundle)\n" in out
    assert "  tensorrt: TensorRT 10 for CUDA 13 (check: ldconfig -p | grep libnvinfer.so.10)\n" in out
    assert "\n  cpu: " not in out
