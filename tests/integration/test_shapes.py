"""Sizes without a name, on a real model as PaddleOCR exports it: from the refusal, by the command in its hint, to a
bundle.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import models
from tests.support.command_line import ONE_PYTHON, CommandLine
from tests.support.documents import read_document
from tests.support.real_models import fetch_example

RAN = " (the model ran at these sizes)"


@pytest.fixture(scope="module")
def orientation(shared: Path) -> Path:
    """The orientation classifier of rapidocr: `x: float32[?, 3, ?, ?]`."""
    return fetch_example("text_orientation", shared / "text_orientation" / "orientation.onnx")


def read_runtime(folder: Path) -> dict[str, Any]:
    """`runtime.json` of a bundle in whatever format."""
    payload = json.loads((folder / "bundle.json").read_text("utf-8"))["payload"]
    found: dict[str, Any] = read_document(folder / payload / "runtime.json")
    return found


def hinted_command(text: str) -> list[str]:
    """The arguments of the command in a hint, as a shell would split them."""
    (line,) = (line for line in text.splitlines() if line.startswith("hint: "))
    command = line.partition("for example ")[2].removesuffix(RAN)
    program, *arguments = shlex.split(command)
    assert program == "bundler"
    return arguments


@pytest.mark.quick
def test_an_npu_gets_the_model_by_the_command_that_the_refusal_prints(
    warm: CommandLine, orientation: Path, tmp_path: Path
) -> None:
    model = tmp_path / "a folder" / "orientation.onnx"
    model.parent.mkdir()
    model.write_bytes(orientation.read_bytes())
    refused = warm.run(*("build", model, "--target=snapdragon-8g3", "-o", tmp_path / "out", "--no-prove")).expect(2)
    assert "  x[0], x[2], x[3] are dynamic and unnamed" in refused.err
    built = warm.run(*hinted_command(refused.err), timeout=600).expect(0)
    assert "htp: 179 of 179 nodes assigned to QNNExecutionProvider" in built.out
    config = read_runtime(tmp_path / "out" / "orientation-snapdragon-8g3")
    assert config["signature"]["inputs"][0]["type"]["shape"] == [1, 3, 64, 64]
    assert config["signature"]["outputs"][0]["type"]["shape"] == [1, 2]
    assert {(size["name"], size["size"], size["by"]) for size in config["fixed_sizes"]} == {
        ("x[0]", 1, "user"),
        ("x[2]", 64, "user"),
        ("x[3]", 64, "user"),
    }


def test_what_fixed_sizes_gain_on_nnapi_is_reported_and_comes_true(
    warm: CommandLine, orientation: Path, tmp_path: Path
) -> None:
    options = ("build", orientation, "--target=android-arm64", "--no-prove", "-o", tmp_path)
    open_sizes = warm.run(*options).expect(0)
    gain = "with fixed sizes 170 of 179 nodes are likely to be assigned to it, for example with --shape x=1,3,64,64"
    assert "nnapi: 0 of 179 nodes assigned to NnapiExecutionProvider" in open_sizes.out
    assert gain in open_sizes.out
    assert gain.partition(", for")[0] in open_sizes.err
    assert gain in (tmp_path / "orientation-android-arm64.report" / "report.html").read_text(encoding="utf-8")
    fixed = warm.run(*options, "--shape", "x=1,3,48,192", "--json").expect(0).document["bundles"][0]
    (placed,) = fixed["placements"]
    assert (placed["assigned"], placed["total"], placed["gain"]) == (170, 179, "")


def test_a_bundle_of_one_shape_is_verified_with_it_and_takes_no_other(
    warm: CommandLine, orientation: Path, tmp_path: Path
) -> None:
    shape = ("--shape", "x=1,3,48,192")
    options = (orientation, "--target=linux-x64", "--set", ONE_PYTHON)
    steps = warm.run("plan", *options, *shape).expect(0).out
    assert "dimension x[2]: 48: given for this build" in steps
    warm.run("build", *options, *shape, "-o", tmp_path, timeout=600).expect(0)
    bundle = tmp_path / "orientation-linux-x64"
    golden = json.loads(next(bundle.rglob("golden/index.json")).read_text(encoding="utf-8"))
    assert "[1, 3, 48, 192]" in json.dumps(golden)
    assert "x\\[2\\] = 48, given for this build" in (bundle / "README.md").read_text(encoding="utf-8")
    assert warm.run("plan", *options, "--shape", "x=1,3,48,96").expect(0).out != steps


def test_samples_of_another_shape_are_refused(warm: CommandLine, tmp_path: Path) -> None:
    model = models.save(models.cnn(), tmp_path / "in")
    samples = tmp_path / "samples"
    samples.mkdir()
    np.savez(samples / "one.npz", image=models.weights(2, 3, 16, 16))
    options = (model, "--target=linux-x64", "--samples", samples, "--set", ONE_PYTHON)
    refused = warm.run("build", *options, "--shape", "image=1,3,16,16", "-o", tmp_path).expect(2)
    assert "expected float32[1, 3, 16, 16], got float32[2, 3, 16, 16]" in refused.err


def test_a_project_names_shapes(warm: CommandLine, orientation: Path, tmp_path: Path) -> None:
    text = f"""
    targets = ["android-arm64"]
    [[models]]
    path = {json.dumps(str(orientation))}
    shapes = {{ x = [1, 3, 48, 192] }}
    """
    (tmp_path / "bundler.toml").write_text(text, encoding="utf-8")
    inside = CommandLine(cache=warm.cache, cwd=tmp_path)
    inside.run("build", "--no-prove", timeout=600).expect(0)
    config = read_runtime(tmp_path / "dist" / "orientation-android-arm64")
    assert config["signature"]["inputs"][0]["type"]["shape"] == [1, 3, 48, 192]
    (tmp_path / "bundler.toml").write_text(text.replace("48", '"N"'), encoding="utf-8")
    refused = inside.run("build").expect(2).err
    assert "expected numbers separated by commas, and ? for a size to leave open, got 'N'" in refused
    assert "bundler.toml" in refused


def test_what_is_unnamed_is_listed_with_the_option_that_fixes_it(warm: CommandLine, orientation: Path) -> None:
    line = "x[0], x[2], x[3] (unnamed)"
    assert (
        f"dynamic     {line}   (fix them with, for example, --shape x=1,3,64,64)"
        in warm.run("inspect", orientation).expect(0).out
    )
    found = warm.run("targets", "recommend", orientation, "--device", "snapdragon-8g3").expect(0).out
    assert f"dynamic dimensions: {line}" in found
    assert "--shape x=1,3,N,N" in found
    assert "replace N below with the sizes that you need" in " ".join(found.split())
    found = warm.run("targets", "recommend", orientation, "--device", "android-arm64").expect(0).out
    reported = "xnnpack, nnapi: nodes with open sizes run on the CPU; --shape x=1,3,N,N assigns more of them"
    assert reported in " ".join(found.split())


def test_shapes_of_several_models_find_theirs(warm: CommandLine, orientation: Path, tmp_path: Path) -> None:
    other = models.save(models.cnn(), tmp_path / "in", "cnn.onnx")
    again = tmp_path / "again.onnx"
    again.write_bytes(orientation.read_bytes())
    options = ("plan", "--json", "--target=snapdragon-8g3")

    def plan(model: Path, *shapes: str) -> dict[str, int]:
        found = warm.run(*options, model, *shapes).expect(0).document
        return {size["name"]: size["size"] for size in found["plan"]["components"][0]["fixed_sizes"]}

    assert plan(orientation, "--shape", "orientation:x=1,3,48,192") == {"x[0]": 1, "x[2]": 48, "x[3]": 192}
    build = ("build", "--no-prove", "--target=android-arm64", "-o", tmp_path / "out")
    shapes = ("--shape", "image=2,3,16,16", "--shape", "x=1,3,48,192")
    warm.run(*build, orientation, other, *shapes, timeout=600).expect(0)
    assert read_runtime(tmp_path / "out" / "cnn-android-arm64")["signature"]["inputs"][0]["type"]["shape"][0] == 2
    fixed = read_runtime(tmp_path / "out" / "orientation-android-arm64")["signature"]["inputs"][0]["type"]["shape"]
    assert fixed == [1, 3, 48, 192]
    refused = warm.run(*build, orientation, again, "--shape", "x=1,3,48,192").expect(2).err
    assert "hint: --shape orientation:x=1,3,48,192 --shape again:x=1,3,48,192" in refused


def test_an_engine_is_built_for_a_range_of_sizes(warm: CommandLine, orientation: Path, tmp_path: Path) -> None:
    shape = "x=1..4,3,48,64..192..320"
    options = ("build", orientation, "--target=rtx-4090", "--format=files", "--no-prove", "-o", tmp_path)
    built = warm.run(*options, "--shape", shape, timeout=900).expect(0)
    assert "tensorrt-rtx: 179 of 179 nodes assigned to NvTensorRTRTXExecutionProvider" in built.out
    config = read_runtime(tmp_path / "orientation-rtx-4090")
    assert config["signature"]["inputs"][0]["type"]["shape"] == [None, 3, 48, None]
    ranges = config["variants"][0]["providers"][0]["options"]
    assert ranges["nv_profile_max_shapes"] == "x:4x3x48x320"
