"""A bundle names no place of the machine that built it, and two machines of one kind build the same bytes."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support import models
from tests.support.command_line import ONE_PYTHON, ROOT, CommandLine, digest_folder
from tests.support.machines import build_elsewhere, find_traces

pytestmark = pytest.mark.timeout(900)

NATIVE, OTHER = f"--set={ONE_PYTHON}", '--set=python.versions=["3.12"]'
# A network that nobody trained keeps little in int8: its answers are not what is tested here.
CALIBRATED = ("--calibration={in}/samples", "--set=accuracy.sqnr_db=-20", "--set=accuracy.top1_agreement=0")
METRIC = (
    *("--samples={in}/samples", "--set=accuracy.metric.python={in}/metric.py:measure", "--set=accuracy.metric.least=0"),
    "--no-prove",
)
COMMAND = (
    "--samples={in}/samples",
    '--set=accuracy.metric.command=["{in}/measure.sh", "--labels={in}/labels", "{answers}"]',
    *("--set=accuracy.metric.least=0", "--no-prove"),
)
QUICK = {
    "files": ("linux-x64", "--format=files"),
    "metric": ("linux-x64", "--format=files", *METRIC),
    "metric-command": ("linux-x64", "--format=files", *COMMAND),
}
SLOW = {
    "model-package": ("linux-x64", "--format=ortpackage"),
    "android": ("android-arm64",),
    "ios": ("ios-arm64",),
    "python": ("linux-x64", NATIVE),
    "wheel": ("linux-x64", NATIVE, "--format=wheel"),
    "pex": ("linux-x64", NATIVE, "--format=pex"),
    "web": ("web-wasm",),
    "web-archive": ("web-webgpu", "--format=tgz", "--no-prove"),
    "qnn": ("snapdragon-8g3", *CALIBRATED),
    "qnn-windows": ("snapdragon-x-elite", OTHER, *CALIBRATED),
    "tensorrt-rtx": ("rtx-4090", NATIVE),
    "cuda": ("h100", NATIVE),
    "migraphx": ("amd-mi300", '--set=python.versions=["3.12"]'),
    "openvino": ("intel-xeon", NATIVE, *CALIBRATED),
    "openvino-npu": ("intel-npu", OTHER),
    "jetson": ("jetson-orin", OTHER),
    "ryzen": ("ryzen-ai-npu", OTHER),
    "windows": ("windows-x64", OTHER),
    "macos": ("macos-arm64", OTHER),
}
KINDS = QUICK | SLOW


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of convolutions, with samples and the user's own metrics beside it."""
    folder = tmp_path_factory.mktemp("model")
    path = models.save(models.cnn(), folder, "network.onnx")
    (given,) = onnx.load(path).graph.input
    shape = [dim.dim_value or 1 for dim in given.type.tensor_type.shape.dim]
    rng = np.random.default_rng(0)
    (folder / "samples").mkdir()
    for number in range(20):
        np.savez(folder / "samples" / f"{number:02d}.npz", **{given.name: rng.normal(size=shape).astype("f4")})
    (folder / "metric.py").write_text("def measure(samples):\n    return float(len(list(samples)))\n")
    (folder / "measure.sh").write_text("#!/bin/sh\necho 1\n")
    (folder / "measure.sh").chmod(0o755)
    return path


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind in SLOW else []) for kind in KINDS]
)
def test_no_bundle_tells_where_it_was_built(bundler: CommandLine, model: Path, tmp_path: Path, kind: str) -> None:
    target, *options = KINDS[kind]
    first, second = (
        build_elsewhere(bundler, number, tmp_path, model, f"--target={target}", *options) for number in (0, 1)
    )
    assert find_traces(first, str(ROOT)) == []
    assert digest_folder(first) == digest_folder(second)


def test_what_a_machine_left_would_be_found(tmp_path: Path) -> None:
    """In a file, in a name, and in what is packed into a file."""
    bundle = tmp_path / "bundle"
    (bundle / "inner").mkdir(parents=True)
    (bundle / "clean").write_text("nothing")
    (bundle / "inner" / "said").write_bytes("at qzx-builder-home".encode("utf-16-le"))
    for kind in ("zip", "gztar"):
        shutil.make_archive(str(tmp_path / "packed"), kind, bundle)
    for packed in ("packed.zip", "packed.tar.gz"):
        (bundle / packed).write_bytes((tmp_path / packed).read_bytes())
    found = find_traces(bundle)
    assert "clean" not in found
    assert "inner/said" in found
    assert any(name.startswith("packed.zip!") for name in found)
    assert any(name.startswith("packed.tar.gz!gz!") for name in found)
