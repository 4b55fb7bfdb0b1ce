"""What cannot be rounded, or calibrated with, is refused with one clear message, and nothing half-written is left."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import quantize_dynamic
from PIL import Image
from syrupy.assertion import SnapshotAssertion

from tests.integration.test_bad_input import GATE, STAGE, USAGE, check_refused
from tests.support import models
from tests.support.command_line import CommandLine, list_all, normalise
from tests.support.documents import read_document

Refuse = Callable[..., str]
STATIC = "--set=precision.method=static-int8"


@pytest.fixture
def refuse(warm: CommandLine, here: tuple[str, ...], tmp_path: Path) -> Refuse:
    """`refuse(code, model, *options)` builds in vain: the error as a person reads it."""
    inside = dataclasses.replace(warm, cwd=tmp_path)

    def build(code: int, model: onnx.ModelProto, *options: str | Path, target: tuple[str, ...] = here) -> str:
        path = models.save(model, tmp_path / "in")
        output = tmp_path / "out"
        answer = inside.run("build", path, *target, "--output", output, "--no-prove", "--json", *options)
        check_refused(answer, code)
        assert list_all(output) == []
        text = answer.err[answer.err.index("error: ") :]
        return normalise(text, {"tmp": tmp_path, "cache": warm.cache})

    return build


def write_samples(folder: Path, **arrays: np.ndarray) -> Path:
    folder.mkdir(exist_ok=True)
    for index in range(len(next(iter(arrays.values()), ()))):
        np.savez(folder / f"{index}.npz", **{name: values[index] for name, values in arrays.items()})
    return folder


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def with_nan(values: np.ndarray) -> np.ndarray:
    values[1, 0, 3] = np.nan
    return values


CALIBRATION: dict[str, dict[str, np.ndarray]] = {
    "wrong-name": {"y": noise(6, 1, 8)},
    "one-input-too-many": {"x": noise(6, 1, 8), "z": noise(6, 1)},
    "wrong-shape": {"x": noise(6, 1, 9)},
    "wrong-rank": {"x": noise(6, 8)},
    "wrong-type": {"x": np.array([[["a"] * 8]] * 6)},
    "wider-type": {"x": noise(6, 1, 8).astype(np.float64)},
    "all-constant": {"x": np.ones((6, 1, 8), np.float32)},
    "nan": {"x": with_nan(noise(6, 1, 8))},
    "infinite": {"x": np.full((6, 1, 8), np.inf, np.float32)},
}


@pytest.mark.parametrize("kind", CALIBRATION)
def test_data_that_cannot_be_calibrated_with(
    refuse: Refuse, tmp_path: Path, kind: str, snapshot: SnapshotAssertion
) -> None:
    samples = write_samples(tmp_path / "samples", x=noise(4, 1, 8))
    data = write_samples(tmp_path / "data", **CALIBRATION[kind])
    assert refuse(USAGE, models.mlp(), STATIC, "--calibration", data, "--samples", samples) == snapshot


def test_an_empty_folder(refuse: Refuse, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (tmp_path / "data").mkdir()
    assert refuse(USAGE, models.mlp(), STATIC, "--calibration", "data") == snapshot


def test_too_few_samples_to_hold_some_out(refuse: Refuse, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    write_samples(tmp_path / "data", x=noise(1, 1, 8))
    assert refuse(USAGE, models.mlp(), STATIC, "--calibration", "data") == snapshot


@pytest.mark.parametrize("method", ["static-int8", "static-a16w8", "mixed-fp16", "weights-4bit-gptq"])
def test_no_data_for_a_method_that_needs_some(refuse: Refuse, method: str, snapshot: SnapshotAssertion) -> None:
    assert refuse(USAGE, models.mlp(), f"--set=precision.method={method}") == snapshot


def test_pictures_that_nothing_is_said_of(refuse: Refuse, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    write_pictures(tmp_path / "pictures")
    assert refuse(USAGE, models.cnn(), STATIC, "--calibration", "pictures") == snapshot


def write_pictures(folder: Path) -> Path:
    folder.mkdir()
    for index in range(6):
        values = np.random.default_rng(index).integers(0, 255, (20, 20, 3), np.uint8)
        Image.fromarray(values).save(folder / f"{index}.png")
    return folder


@pytest.mark.parametrize("kind", ["truncated", "text", "empty"])
def test_a_picture_that_cannot_be_read(refuse: Refuse, tmp_path: Path, kind: str, snapshot: SnapshotAssertion) -> None:
    folder = write_pictures(tmp_path / "pictures")
    (folder / "preprocessing.toml").write_text('kind = "image"\n', encoding="utf-8")
    whole = (folder / "3.png").read_bytes()
    spoilt = {"truncated": whole[: len(whole) // 2], "text": b"this is no picture", "empty": b""}[kind]
    (folder / "3.png").write_bytes(spoilt)
    assert refuse(USAGE, models.cnn(), STATIC, "--calibration", "pictures") == snapshot


@pytest.mark.parametrize("method", ["static-int8", "dynamic-int8", "fp16", "weights-8bit"])
def test_a_model_that_is_quantised_already(
    refuse: Refuse, tmp_path: Path, method: str, snapshot: SnapshotAssertion
) -> None:
    plain = models.save(models.mlp(), tmp_path / "plain")
    quantize_dynamic(plain, tmp_path / "int8.onnx")
    write_samples(tmp_path / "data", x=noise(10, 1, 8))
    quantised = onnx.load(tmp_path / "int8.onnx")
    asked = f"--set=precision.method={method}"
    assert refuse(STAGE, quantised, asked, "--calibration", "data") == snapshot


METHODS = {
    "not-for-webgpu": ("web-webgpu", "precision.method=static-int8"),
    "not-for-webnn": ("web-webnn", "variants.webnn.precision=weights-4bit"),
    "not-for-any": ("linux-x64", "precision.method=bf16"),
    "unknown": ("linux-x64", "precision.method=static-int9"),
    "setting-not-read": ("linux-x64", "precision.per_channel=true"),
    "unknown-in-the-order": ("linux-x64", 'precision.order=["dynamic-int8", "int4"]'),
}


@pytest.mark.parametrize("kind", METHODS)
def test_a_method_that_is_not_for_this_target(refuse: Refuse, kind: str, snapshot: SnapshotAssertion) -> None:
    target, override = METHODS[kind]
    asked = ["--set=precision.method=fp16"] if kind == "setting-not-read" else []
    assert refuse(USAGE, models.mlp(), *asked, "--set", override, target=("--target", target)) == snapshot


EXCLUSIONS = {
    "node": ("static-int8", 'precision.exclude_nodes=["gemm_9"]'),
    "operator": ("static-int8", 'precision.exclude_operators=["MatMull"]'),
    "everything": ("static-int8", 'precision.exclude_operators=["MatMul", "Gemm"]'),
    "node-of-weights": ("weights-8bit", 'precision.exclude_nodes=["nothing"]'),
    "operator-of-floats": ("fp16", 'precision.exclude_operators=["Gem"]'),
    "node-of-floats": ("fp16", 'precision.exclude_nodes=["nothing"]'),
}


@pytest.mark.parametrize("kind", EXCLUSIONS)
def test_an_exclusion_that_fits_nothing(refuse: Refuse, tmp_path: Path, kind: str, snapshot: SnapshotAssertion) -> None:
    method, override = EXCLUSIONS[kind]
    write_samples(tmp_path / "data", x=noise(10, 1, 8))
    model = models.mlp()
    for index, node in enumerate(model.graph.node):
        node.name = f"{node.op_type.lower()}_{index}"
    asked = (f"--set=precision.method={method}", "--set", override, "--calibration", "data")
    assert refuse(STAGE, model, *asked) == snapshot


@pytest.mark.parametrize("method", ["dynamic-int8", "weights-4bit", "static-int8"])
def test_a_model_with_nothing_to_quantise(
    refuse: Refuse, tmp_path: Path, method: str, snapshot: SnapshotAssertion
) -> None:
    write_samples(tmp_path / "data", x=noise(10, 2, 3))
    model = models.identity()
    assert refuse(STAGE, model, f"--set=precision.method={method}", "--calibration", "data") == snapshot


def test_an_old_opset_is_raised_and_that_is_reported(warm: CommandLine, here: tuple[str, ...], tmp_path: Path) -> None:
    model = models.cnn()
    model.opset_import[0].version = 11
    for node in model.graph.node:
        del node.attribute[len(node.attribute) :]
    path = models.save(model, tmp_path / "in")
    data = write_samples(tmp_path / "data", image=noise(10, 1, 3, 16, 16))
    asked = (*here, STATIC, "--calibration", data, "--output", tmp_path / "out", "--no-prove")
    text = warm.run("build", path, *asked).expect(0).err
    assert "the opset was raised from 11 to 13, which the format requires" in text


def test_made_up_data_mark_the_bundle(warm: CommandLine, here: tuple[str, ...], tmp_path: Path) -> None:
    path = models.save(models.mlp(), tmp_path / "in", "tiny.onnx")
    asked = (*here, STATIC, "--calibration", "synthetic", "--output", tmp_path / "out", "--no-prove")
    answer = warm.run("build", path, *asked).expect(0)
    assert "NOT FOR SHIPPING" in answer.out
    bundle = tmp_path / "out" / "tiny-linux-x64"
    (reservation,) = read_document(bundle / "bundle.json")["reservations"]
    assert "synthetic" in reservation
    assert reservation in (bundle.with_name("tiny-linux-x64.report") / "report.html").read_text(encoding="utf-8")
    again = warm.run("build", path, *asked, "--json").expect(0).document["bundles"][0]
    assert again["up_to_date"]
    assert again["reservations"] == [reservation]


def test_a_gate_that_rounding_cannot_hold(refuse: Refuse, tmp_path: Path) -> None:
    write_samples(tmp_path / "data", x=noise(20, 1, 8))
    model = models.mlp(width=8, hidden=64)
    text = refuse(GATE, model, STATIC, "--calibration", "data", "--set=accuracy.sqnr_db=120")
    assert "breaks the accuracy gate" in text
    assert "hint: " in text
