"""The way to the quantiser: who infers shapes, what is written where, and weights that do not fit a model file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from bundler.onnxkit.quantization import preparing
from tests.support import models
from tests.support.calibration import normal_feeds, write_set
from tests.support.stage_calls import call_stage

STAGES = ("static", "dynamic")
SHAPES = ("auto", "plain", "symbolic")


def quantize(stage: str, folder: Path, model: Path, **options: Any) -> dict[str, Any]:
    shape = onnx.load(model, load_external_data=False).graph.input[0].type.tensor_type.shape
    feeds = normal_feeds(shape_name(model), tuple(dim.dim_value or 2 for dim in shape.dim), 4)
    inputs = {"model": model}
    if stage == "static":
        inputs["samples"] = write_set(model, feeds, folder / "samples")
    result = call_stage(f"quantize_{stage}", folder / "out", inputs, **options)
    return dict(result.facts) | {"notes": [note.text for note in result.notes]}


def shape_name(model: Path) -> str:
    name: str = onnx.load(model, load_external_data=False).graph.input[0].name
    return name


def conflicting() -> onnx.ModelProto:
    """An input and an output say different symbols for one size: symbolic inference fails unless it may merge them."""
    nodes = [
        helper.make_node("Add", ["x", "other"], ["sum"]),
        helper.make_node("MatMul", ["sum", "w"], ["y"]),
    ]
    inputs = [models.value("x", ["batch", "left", 8]), models.value("other", ["batch", "right", 8])]
    tensors = (models.tensor("w", models.weights(8, 4)),)
    return models.make_model(nodes, inputs, [models.value("y", ["batch", "left", 4])], tensors)


@pytest.mark.parametrize("stage", STAGES)
def test_symbolic_inference_runs_where_it_is_asked_for(tmp_path: Path, stage: str) -> None:
    model = models.save(models.cnn(), tmp_path / "model")
    forms = {shapes: quantize(stage, tmp_path / shapes, model, shapes=shapes)["preprocess"] for shapes in SHAPES}
    assert forms == {"auto": "plain", "plain": "plain", "symbolic": "full"}


@pytest.mark.parametrize("stage", STAGES)
def test_symbolic_inference_runs_where_types_would_be_missing(
    tmp_path: Path, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "knows_types", lambda _model, operators: "MatMul" not in operators)
    model = models.save(models.mlp(), tmp_path / "model")
    assert quantize(stage, tmp_path / "auto", model)["preprocess"] == "full"
    assert quantize(stage, tmp_path / "plain", model, shapes="plain")["preprocess"] == "plain"


def test_a_tensor_of_an_unknown_operator_has_no_type() -> None:
    model = models.mlp()
    inferred = onnx.shape_inference.infer_shapes(model)
    assert preparing.knows_types(inferred, ["MatMul", "Erf"])
    assert not preparing.knows_types(model, ["MatMul", "Erf"])
    assert preparing.knows_types(model, ["Conv"])


def test_nothing_is_written_into_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    model = models.save(conflicting(), tmp_path / "model")
    result = call_stage("quantize_dynamic", tmp_path / "out", {"model": model}, shapes="symbolic")
    assert result.facts["preprocess"] in ("merged", "unmerged shapes")  # the first try fails
    assert list(here.iterdir()) == []
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["model.onnx"]


def test_sympy_stays_out_of_a_process_that_does_not_need_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sympy", None)  # whoever imports it now fails
    for name in [name for name in sys.modules if name.startswith("onnxruntime.tools.symbolic")]:
        monkeypatch.delitem(sys.modules, name)
    model = models.save(models.cnn(), tmp_path / "model")
    assert quantize("static", tmp_path / "plain", model)["preprocess"] == "plain"
    assert quantize("static", tmp_path / "symbolic", model, shapes="symbolic")["preprocess"] == "unmerged shapes"


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("stage", STAGES)
def test_weights_too_large_for_a_model_file_stay_beside_it(
    tmp_path: Path, stage: str, shapes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is a gigabyte; here it is ten kilobytes, and the weights lie outside the model to begin with."""
    proto = models.mlp(width=64, hidden=128, out=32)
    plain = models.save(proto, tmp_path / "plain")
    model = models.save_external(proto, tmp_path / "model")
    quantize(stage, tmp_path / "small", plain, shapes=shapes)
    monkeypatch.setattr(preparing, "MAX_EMBEDDED_BYTES", 10_000)
    facts = quantize(stage, tmp_path / "large", model, shapes=shapes)
    written = {path.name: path.stat().st_size for path in (tmp_path / "large" / "out").iterdir()}
    assert sorted(written) == ["model.onnx", "model.onnx.data"]
    assert facts["bytes"] == sum(written.values())
    assert written["model.onnx.data"] >= 64 * 128 + 128 * 32  # a byte a weight
    feed = {"x": np.random.default_rng(1).standard_normal((2, 64)).astype(np.float32)}
    answers = [
        onnxruntime.InferenceSession(str(tmp_path / size / "out" / "model.onnx")).run(None, feed)[0]
        for size in ("small", "large")
    ]
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-6)


@pytest.mark.parametrize("stage", STAGES)
def test_large_weights_without_the_pre_process(tmp_path: Path, stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "MAX_EMBEDDED_BYTES", 10_000)
    model = models.save_external(models.mlp(width=64, hidden=128), tmp_path / "model")
    facts = quantize(stage, tmp_path, model, preprocess=False)
    assert facts["preprocess"] == "none"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.onnx", "model.onnx.data"}
    onnxruntime.InferenceSession(str(tmp_path / "out" / "model.onnx"))


@pytest.mark.parametrize("keep_float", ["none", "auto"])
def test_large_weights_and_nodes_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_float: str) -> None:
    monkeypatch.setattr(preparing, "MAX_EMBEDDED_BYTES", 10_000)
    model = models.save_external(models.mlp(width=64, hidden=128), tmp_path / "model")
    options = {"keep_float": keep_float, "least_sqnr_db": 5.0, "exclude_structures": ("narrow",)}
    assert quantize("static", tmp_path, model, **options)["quantized"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.onnx", "model.onnx.data"}
