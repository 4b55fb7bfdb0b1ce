"""ONNX Runtime's quantiser on trained networks and real data: the reference's bytes, and answers that stay right."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bundler.profiles.methods import METHODS as WANTED
from tests.support.calibration import (
    Feed,
    preprocess_by_hand,
    quantize_by_hand,
    quantize_dynamic_by_hand,
    write_set,
)
from tests.support.content_files import list_files, measure_content_types, read_features
from tests.support.digits import Network, load_digits, measure_accuracy, write_network
from tests.support.real_models import fetch_example
from tests.support.stage_calls import call_stage
from tests.support.text_images import draw_lines, measure_orientation, prepare_line

WEIGHTY = ("Conv", "ConvTranspose", "Gemm", "MatMul")
STRUCTURES = ("depthwise", "squeeze", "narrow")


@pytest.fixture(scope="module")
def orientation(shared: Path) -> Path:
    return fetch_example("text_orientation", shared / "text_orientation" / "orientation.onnx")


@pytest.fixture(scope="module")
def content_type(shared: Path) -> Path:
    return fetch_example("content_type", shared / "content_type" / "magika.onnx")


@pytest.fixture(scope="module")
def lines() -> list[Feed]:
    return [{"x": prepare_line(line)[None]} for line in draw_lines(24)]


def read_files(model: Path, count: int) -> Iterator[Feed]:
    paths = [path for path, _ in list_files()]
    return ({"bytes": row[None]} for row in islice(read_features(paths, model), count))


def quantize(name: str, folder: Path, model: Path, feeds: list[Feed] | None = None, **options: Any) -> dict[str, Any]:
    inputs = {"model": model} | ({"samples": write_set(model, feeds, folder / "samples")} if feeds else {})
    return dict(call_stage(f"quantize_{name}", folder / "out", inputs, **options).facts)


@pytest.mark.parametrize("calibration", ["minmax", "entropy", pytest.param("percentile", marks=pytest.mark.slow)])
def test_text_orientation_gives_the_references_bytes(
    orientation: Path, lines: list[Feed], tmp_path: Path, calibration: str
) -> None:
    prepared = preprocess_by_hand(orientation, tmp_path / "prepared.onnx", skip_symbolic_shape=True)
    reference = quantize_by_hand(prepared, lines, tmp_path / "reference.onnx", calibration=calibration)
    facts = quantize("static", tmp_path, orientation, lines, calibration=calibration)
    assert (tmp_path / "out" / "model.onnx").read_bytes() == reference
    assert facts["preprocess"] == "plain"
    assert facts["quantized"]["Conv"] == 53
    assert facts["calibration"] == {"method": calibration, "samples": 24}


@pytest.mark.slow
def test_symbolic_shapes_where_they_are_asked_for(orientation: Path, content_type: Path, tmp_path: Path) -> None:
    """Inference fails on one model, with merged dimensions or without; the other needs them merged."""
    prepared = preprocess_by_hand(content_type, tmp_path / "prepared.onnx", auto_merge=True)
    reference = quantize_dynamic_by_hand(prepared, tmp_path / "reference.onnx", per_channel=True)
    facts = quantize("dynamic", tmp_path / "merged", content_type, per_channel=True, shapes="symbolic")
    assert facts["preprocess"] == "merged"
    assert (tmp_path / "merged" / "out" / "model.onnx").read_bytes() == reference
    facts = quantize("dynamic", tmp_path / "unmerged", orientation, shapes="symbolic")
    assert facts["preprocess"] == "unmerged shapes"


def test_text_orientation_without_its_weak_convolutions_answers_as_before(
    orientation: Path, lines: list[Feed], tmp_path: Path
) -> None:
    options = {"operators": WEIGHTY, "per_channel": True, "exclude_structures": STRUCTURES}
    facts = quantize("static", tmp_path, orientation, lines, **options)
    assert facts["opset"] == 13  # it comes with 11, where the reference writes a model that cannot be loaded
    assert 0 < facts["quantized"]["Conv"] < 20  # of 53: most are depthwise, gates or narrow
    assert measure_orientation(tmp_path / "out" / "model.onnx") >= measure_orientation(orientation) - 0.02


@pytest.mark.slow
def test_text_orientation_keeps_as_many_nodes_as_the_accuracy_asks_for(
    orientation: Path, lines: list[Feed], tmp_path: Path
) -> None:
    options = {"operators": WEIGHTY, "keep_float": "auto"}
    first = quantize("static", tmp_path / "first", orientation, lines[:8], **options, least_sqnr_db=-99.0)
    assert first["kept_nodes"] == []
    asked = first["sqnr_db"] + 6
    facts = quantize("static", tmp_path / "second", orientation, lines[:8], **options, least_sqnr_db=asked)
    assert facts["sqnr_db"] >= asked
    assert 0 < len(facts["kept_nodes"]) < 50 < 50 + facts["quantized"]["Conv"]


def test_content_types_stay_what_they_are(content_type: Path, tmp_path: Path) -> None:
    feeds = list(read_files(content_type, 32))
    before = measure_content_types(content_type, content_type)
    prepared = preprocess_by_hand(content_type, tmp_path / "prepared.onnx", skip_symbolic_shape=True)
    reference = quantize_by_hand(prepared, feeds, tmp_path / "reference.onnx", op_types_to_quantize=list(WEIGHTY))
    facts = quantize("static", tmp_path / "static", content_type, feeds, operators=WEIGHTY)
    quantized = tmp_path / "static" / "out" / "model.onnx"
    assert quantized.read_bytes() == reference
    assert facts["bytes"] < 0.3 * content_type.stat().st_size
    assert measure_content_types(quantized, content_type) >= before - 0.02


@pytest.mark.slow
def test_content_types_per_channel_where_the_reference_stops(content_type: Path, tmp_path: Path) -> None:
    feeds = list(read_files(content_type, 8))
    prepared = preprocess_by_hand(content_type, tmp_path / "prepared.onnx", skip_symbolic_shape=True)
    with pytest.raises(ValueError, match="truth value of an array"):
        quantize_by_hand(prepared, feeds, tmp_path / "reference.onnx", per_channel=True)
    facts = quantize("static", tmp_path, content_type, feeds, operators=WEIGHTY, per_channel=True)
    assert facts["quantized"]["Conv"] == 1
    quantized = tmp_path / "out" / "model.onnx"
    assert measure_content_types(quantized, content_type) >= measure_content_types(content_type, content_type) - 0.02


def test_content_types_dynamically(content_type: Path, tmp_path: Path) -> None:
    prepared = preprocess_by_hand(content_type, tmp_path / "prepared.onnx", skip_symbolic_shape=True)
    reference = quantize_dynamic_by_hand(prepared, tmp_path / "reference.onnx", per_channel=True)
    facts = quantize("dynamic", tmp_path, content_type, per_channel=True)
    assert (tmp_path / "out" / "model.onnx").read_bytes() == reference
    assert facts["preprocess"] == "plain"


METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "dynamic": ("dynamic", {}),
    "QDQ": ("static", {}),
    "QDQ per channel": ("static", {"per_channel": True}),
    "QDQ U8U8": ("static", {"weight_type": "uint8"}),
    "QDQ S8S8 symmetric": (
        "static",
        {"activation_type": "int8", "symmetric_activations": True, "symmetric_weights": True},
    ),
    "QDQ A16W8": ("static", {"activation_type": "uint16"}),
    "QOperator": ("static", {"format": "qoperator", "weight_type": "uint8"}),
    "entropy": ("static", {"calibration": "entropy"}),
    "percentile": ("static", {"calibration": "percentile", "percentile": 99.99}),
    "distribution": ("static", {"calibration": "distribution"}),
    "7 bits": ("static", {"reduce_range": True}),
    "QNN": ("static", WANTED["static-qnn"].options),
    "QNN A16W8": ("static", WANTED["static-qnn-a16w8"].options),
    "TensorRT": ("static", WANTED["static-tensorrt"].options),
}


@pytest.mark.parametrize("network", ["perceptron", "convolutional"])
@pytest.mark.parametrize("method", METHODS)
def test_digits_are_read_as_before(network: Network, method: str, tmp_path: Path) -> None:
    model = write_network(network, tmp_path)
    train, _ = load_digits()
    feeds = [{name: values[:32] for name, values in train.feed(network).items()}]
    stage, options = METHODS[method]
    facts = quantize(stage, tmp_path, model, feeds if stage == "static" else None, **options)
    assert facts["quantized"]
    assert measure_accuracy(tmp_path / "out" / "model.onnx", network) >= measure_accuracy(model, network) - 0.02


CODE = """
import importlib, os, sys
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
from pathlib import Path
from bundler.model.stage import StageRequest
stage, output, options, *inputs = sys.argv[1:]
run = importlib.import_module(f"bundler.stages.{stage}.run").run
Path(output).mkdir()
given = {role: Path(path) for role, path in (item.split("=", 1) for item in inputs)}
texts = []
request = StageRequest(inputs=given, options=eval(options), output=Path(output))
status = Path("/proc/self/status")
def peak():
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)
before = peak()
run(request, lambda share, text: texts.append(text))
print((peak() - before) // 1000, len(texts))
"""


def in_a_process(stage: str, output: Path, options: dict[str, Any], seed: int = 0, **inputs: Path) -> list[int]:
    """How many megabytes the process grew at its peak, and how many reports of progress there were."""
    command = [sys.executable, "-c", CODE, stage, str(output), repr(options)]
    command += [f"{role}={path}" for role, path in inputs.items()]
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return [int(item) for item in done.stdout.split()]


@pytest.mark.parametrize("stage", ["quantize_static", "quantize_dynamic"])
@pytest.mark.slow
def test_every_process_writes_the_same_bytes(orientation: Path, lines: list[Feed], tmp_path: Path, stage: str) -> None:
    samples = write_set(orientation, lines[:4], tmp_path / "samples")
    for seed in range(3):
        in_a_process(stage, tmp_path / f"out-{seed}", {}, seed, model=orientation, samples=samples)
    written = {(tmp_path / f"out-{seed}" / "model.onnx").read_bytes() for seed in range(3)}
    assert len(written) == 1


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from Linux's /proc")
@pytest.mark.parametrize("calibration", ["minmax", "entropy", "percentile"])
def test_five_hundred_images_are_calibrated_in_the_memory_of_fifty(
    orientation: Path, tmp_path: Path, calibration: str
) -> None:
    generator = np.random.default_rng(0)
    feeds = [{"x": generator.standard_normal((1, 3, 48, 192), np.float32)} for _ in range(50)]
    grown = {}
    for times in (1, 10):
        samples = write_set(orientation, feeds * times, tmp_path / f"samples-{times}")
        grown[times], reports = in_a_process(
            "quantize_static",
            tmp_path / f"out-{times}",
            {"calibration": calibration, "operators": ("Conv",)},
            model=orientation,
            samples=samples,
        )
        assert reports >= 50 * times  # progress moves with every sample
    assert grown[10] < grown[1] + 40, "the reference keeps a gigabyte of activations of so many"
