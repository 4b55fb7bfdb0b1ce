"""Seeded golden sets see what goes wrong at larger sizes only, and swapped colours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from bundler.model.codec import decode
from bundler.model.gates import check_gate, resolve_gate
from bundler.model.golden_inputs import TriedDimension
from bundler.model.runtime import Gate, Tolerance
from bundler.onnxkit.golden import read_golden
from bundler.onnxkit.larger_sizes import Limits
from bundler.planning.gate import FLOAT, LOSSY
from tests.support import models
from tests.support.stage_calls import call_stage, compare

INT8 = LOSSY["eight-bit"]


@pytest.fixture(autouse=True)
def _in_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.chdir(tmp_path / "scratch")


def passes(right: ModelProto, wrong: ModelProto, folder: Path, limits: Tolerance = FLOAT, **options: Any) -> bool:
    """Whether the gate accepts `wrong` in place of `right`."""
    call_stage("record_golden", folder / "golden", {"model": models.save(right, folder / "right")}, **options)
    index = folder / "golden" / "index.json"
    found = compare(models.save(wrong, folder / "wrong"), index, folder / "found")
    return not check_gate(found, resolve_gate(Gate(default=limits), read_golden(index).references))


def sizes(folder: Path, model: ModelProto, **options: Any) -> list[tuple[int, ...]]:
    result = call_stage("record_golden", folder / "golden", {"model": models.save(model, folder)}, **options)
    return [decode(TriedDimension, item).sizes for item in result.facts["tried_dimensions"]]


def same(shape: list[Any]) -> ModelProto:
    ends = models.value("x", shape), models.value("y", shape)
    return models.make_model([helper.make_node("Identity", ["x"], ["y"])], [ends[0]], [ends[1]])


def beyond(shape: list[Any], most: int, factor: float) -> ModelProto:
    """Answers its input, multiplied by `factor` where its last axis is longer than `most`."""
    numbers = {"last": np.array(-1), "most": np.array(most), "factor": np.array(factor, np.float32)}
    constants = {**numbers, "one": np.array(1, np.float32)}
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "last"], ["width"]),
        helper.make_node("Greater", ["width", "most"], ["long"]),
        helper.make_node("Where", ["long", "factor", "one"], ["scale"]),
        helper.make_node("Mul", ["x", "scale"], ["y"]),
    ]
    ends = models.value("x", shape), models.value("y", shape)
    tensors = tuple(models.tensor(name, number) for name, number in constants.items())
    return models.make_model(nodes, [ends[0]], [ends[1]], tensors)


IMAGE = ["n", 3, "h", "w"]
LINE = ["n", 3, 48, "w"]
FRAMES = ["n", "frames"]


@pytest.mark.parametrize("shape", [IMAGE, LINE, FRAMES])
@pytest.mark.parametrize("factor", [float("nan"), -1.0])
def test_what_is_wrong_above_the_small_sizes_is_refused(tmp_path: Path, shape: list[Any], factor: float) -> None:
    assert passes(same(shape), same(shape), tmp_path / "same")
    assert not passes(same(shape), beyond(shape, 96, factor), tmp_path / "other")


@pytest.mark.parametrize("shape", [IMAGE, LINE, FRAMES])
def test_a_precision_that_is_too_low_at_a_larger_size_is_refused(tmp_path: Path, shape: list[Any]) -> None:
    """7 dB, of 15: one sample of eight would not show it, and those of several sizes do."""
    coarse = beyond(shape, 100, 1.45)
    assert passes(same(shape), beyond(shape, 1000, 1.45), tmp_path / "far", INT8, rounds=True)
    assert not passes(same(shape), coarse, tmp_path / "near", INT8, rounds=True)


def test_larger_sizes_are_those_of_use(tmp_path: Path) -> None:
    assert sizes(tmp_path / "image", same(IMAGE)) == [(1, 2), (32, 64, 224), (64, 96, 224)]
    assert sizes(tmp_path / "line", same(LINE)) == [(1, 2), (32, 64, 640)]
    assert sizes(tmp_path / "text", same(FRAMES)) == [(1, 2), (8, 16, 256)]
    assert sizes(tmp_path / "precision", same(IMAGE), rounds=True) == [
        (1, 2),
        (32, 48, 64, 224),
        (64, 96, 192, 224),
    ]
    assert sizes(tmp_path / "lines", same(LINE), rounds=True) == [(1, 2), (32, 64, 192, 320, 640)]
    assert sizes(tmp_path / "texts", same(FRAMES), rounds=True) == [(1, 2), (8, 16, 32, 128, 256)]


def test_the_larger_sample_is_a_scene(tmp_path: Path) -> None:
    """A detector answers nothing to noise, at any size."""
    call_stage("record_golden", tmp_path / "golden", {"model": models.save(same(IMAGE), tmp_path)})
    golden = read_golden(tmp_path / "golden" / "index.json")
    images = [golden.sample(index).inputs["x"] for index in range(len(golden.entries))]
    (large,) = (image for image in images if image.shape[-1] == 224)
    assert np.abs(np.diff(large, axis=-1)).mean() < 0.3 * large.std(), "neighbours are alike"


def test_the_larger_sizes_have_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not measured."""
    frugal = Limits(samples=1, multiplications=1_500_000_000, byte_size=400_000)
    monkeypatch.setattr("bundler.stages.record_golden.run.LARGEST", frugal)
    assert sizes(tmp_path / "bytes", same(IMAGE)) == [(1, 2), (32, 48, 64), (64, 96, 192)]
    idle = Limits(samples=1, multiplications=0, byte_size=2 << 20)
    monkeypatch.setattr("bundler.stages.record_golden.run.LARGEST", idle)
    assert sizes(tmp_path / "work", models.unnamed_dimensions()) == [(1, 2), (32, 64), (64, 96)]


def test_a_set_of_many_sizes_stays_small(tmp_path: Path) -> None:
    sizes(tmp_path, same(IMAGE), rounds=True)
    assert sum(path.stat().st_size for path in (tmp_path / "golden").rglob("*") if path.is_file()) < 6_000_000


def test_a_stream_keeps_its_sizes(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], axes=[1], keepdims=1),
        helper.make_node("Add", ["mean", "h"], ["hn"]),
    ]
    inputs = [models.value("x", [1, "frames"]), models.value("h", [1, 1])]
    model = models.make_model(nodes, inputs, [models.value("hn", [1, 1])])
    assert sizes(tmp_path, model, state=[{"input": "h", "output": "hn"}]) == [(8, 16)]


def redder(channel: int, *, axis: int, element: int = TensorProto.FLOAT) -> ModelProto:
    """Answers whether the mean of a channel is by a tenth above that of the last but one of the others."""
    shape = ["n", "h", "w", 3] if axis == 3 else IMAGE
    scale = 255.0 if element == TensorProto.UINT8 else 1.0
    axes = [item for item in (1, 2, 3) if item != axis]
    constants = {
        "one": np.array(channel),
        "other": np.array(1),
        "margin": np.array(0.1 * scale, np.float32),
    }
    nodes: list[NodeProto] = [
        helper.make_node("Cast", ["x"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["numbers"], ["means"], axes=axes, keepdims=0),
        helper.make_node("Gather", ["means", "one"], ["mean"], axis=1),
        helper.make_node("Gather", ["means", "other"], ["usual"], axis=1),
        helper.make_node("Add", ["usual", "margin"], ["least"]),
        helper.make_node("Greater", ["mean", "least"], ["y"]),
    ]
    tensors = tuple(models.tensor(name, number) for name, number in constants.items())
    ends = models.value("x", shape, element), models.value("y", ["n"], TensorProto.BOOL)
    return models.make_model(nodes, [ends[0]], [ends[1]], tensors)


@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.UINT8])
def test_swapped_colours_are_seen(tmp_path: Path, axis: int, element: int) -> None:
    """The means of noise are alike in all channels, so that only scenes tell red from blue."""
    right, wrong = (redder(channel, axis=axis, element=element) for channel in (0, 2))
    assert passes(right, right, tmp_path / "same")
    assert not passes(right, wrong, tmp_path / "swapped")
