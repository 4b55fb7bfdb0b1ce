"""What cannot be quantised is refused with the reason and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from bundler.model.errors import StageError
from bundler.onnxkit.golden import write_index
from bundler.onnxkit.quantization import calibration, samples
from tests.support import models
from tests.support.calibration import normal_feeds, write_set
from tests.support.stage_calls import call_stage

FEEDS = normal_feeds("image", (1, 3, 16, 16), 3)


def quantize(folder: Path, model: Path, feeds: list[dict[str, np.ndarray]] = FEEDS, **options: Any) -> dict[str, Any]:
    index = write_set(model, feeds, folder / "samples")
    result = call_stage("quantize_static", folder / "out", {"model": model, "samples": index}, **options)
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["model.onnx"]
    return dict(result.facts) | {"notes": [note.text for note in result.notes]}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.save(models.cnn(), tmp_path / "model")


def test_an_empty_set(tmp_path: Path, model: Path) -> None:
    (tmp_path / "samples").mkdir()
    write_index(tmp_path / "samples", [], seed=None, unstable=())
    inputs = {"model": model, "samples": tmp_path / "samples" / "index.json"}
    with pytest.raises(StageError, match="no samples for calibration"):
        call_stage("quantize_static", tmp_path / "out", inputs)


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
def test_a_model_that_is_quantised_already(tmp_path: Path, model: Path, form: str) -> None:
    quantize(tmp_path / "first", model, format=form)
    with pytest.raises(StageError, match="already quantised") as caught:
        quantize(tmp_path / "second", tmp_path / "first" / "out" / "model.onnx")
    assert "Linear" in caught.value.details[0]
    assert "floating-point model" in str(caught.value.hint)


def test_misspelt_operators_and_nodes(tmp_path: Path) -> None:
    proto = models.cnn()
    for place, node in enumerate(proto.graph.node):
        node.name = f"{node.op_type.lower()}-{place}"
    model = models.save(proto, tmp_path / "model")
    with pytest.raises(StageError, match="no operator 'Convv'") as caught:
        quantize(tmp_path / "a", model, operators=("Convv",))
    assert caught.value.hint == "did you mean 'Conv'?"
    with pytest.raises(StageError, match="no node 'convv-0'") as caught:
        quantize(tmp_path / "b", model, exclude_nodes=("convv-0",))
    assert caught.value.hint == "did you mean 'conv-0'?"


def test_nodes_and_operators_are_kept_out(tmp_path: Path) -> None:
    proto = models.cnn()
    for place, node in enumerate(proto.graph.node):
        node.name = f"node-{place}"
    model = models.save(proto, tmp_path / "model")
    options = {"operators": ("Conv", "Gemm"), "exclude_operators": ("Gemm",), "exclude_nodes": ("node-0",)}
    assert quantize(tmp_path, model, **options)["quantized"] == {"Conv": 1}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"operators": ("MatMul",)}, "has none of the operators to quantise: 'MatMul'"),
        ({"operators": ("Flatten",)}, "no operator that it supports"),
    ],
)
def test_nothing_quantised_is_no_success(tmp_path: Path, model: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(StageError, match="nothing was quantised") as caught:
        quantize(tmp_path, model, **options)
    assert reason in caught.value.details[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation_type": "int8", "weight_type": "uint8"}, "does not support int8 activations with uint8 weights"),
        ({"activation_type": "uint16", "format": "qoperator"}, "the QOperator format does not support 16-bit types"),
        ({"rules": "qnn", "format": "qoperator"}, "does not support the rules of qnn"),
        ({"rules": "os"}, "no own quantisation rules for 'os'"),
        ({"rules": "../qnn"}, "no own quantisation rules for '../qnn'"),
        ({"percentile": 200.0}, "200 is not a percentile"),
        ({"extra": {"WeightSymetric": True}}, "no option 'WeightSymetric'"),
        ({"extra": {"SmoothQuant": True}}, "neural-compressor"),
        ({"extra": {"CalibMaxIntermediateOutputs": 4}}, "the activations of one sample"),
        ({"extra": {"TensorQuantOverrides": {"c1": [{"quant_type": "int7"}]}}}, "names an unsupported type"),
        ({"extra": {"TensorQuantOverrides": [1]}}, "tensor overrides must be lists"),
        ({"extra": {"TensorQuantOverrides": {"nowhere": [{"quant_type": "int8"}]}}}, "cannot quantise this model"),
    ],
)
def test_incompatible_options(tmp_path: Path, model: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(StageError, match=message):
        quantize(tmp_path, model, **options)


def test_tensor_overrides_in_words(tmp_path: Path, model: Path) -> None:
    extra = {"TensorQuantOverrides": {"image": [{"quant_type": "int8"}]}}
    quantize(tmp_path, model, extra=extra)
    points = {item.name: item for item in onnx.load(tmp_path / "out" / "model.onnx").graph.initializer}
    assert points["image_zero_point"].data_type == onnx.TensorProto.INT8


def older(version: int) -> onnx.ModelProto:
    proto = models.cnn()
    proto.opset_import[0].version = version
    return proto


def test_an_old_opset_is_raised_for_weights_per_channel(tmp_path: Path) -> None:
    model = models.save(older(11), tmp_path / "model")
    facts = quantize(tmp_path / "raised", model, per_channel=True)
    assert facts["opset"] == 13
    assert "the opset was raised from 11 to 13, which the format requires" in facts["notes"]
    assert quantize(tmp_path / "kept", model)["opset"] == 11
    with pytest.raises(StageError, match="the model has opset 11, and this format requires 13"):
        quantize(tmp_path / "refused", model, per_channel=True, raise_opset=False)


def test_an_opset_before_quantisation_is_raised(tmp_path: Path) -> None:
    model = models.save(older(9), tmp_path / "model")
    assert quantize(tmp_path / "with", model)["opset"] == 11
    assert quantize(tmp_path / "without", model, preprocess=False)["opset"] == 11
    with pytest.raises(StageError, match="the model has opset 9, and this format requires 10"):
        quantize(tmp_path / "refused", model, raise_opset=False)


def test_16_bit_types_raise_the_opset_or_use_the_runtimes_own_operators(tmp_path: Path, model: Path) -> None:
    assert quantize(tmp_path / "raised", model, activation_type="uint16")["opset"] == 21
    facts = quantize(tmp_path / "kept", model, activation_type="uint16", raise_opset=False)
    assert facts["opset"] == models.OPSET
    domains = {node.domain for node in onnx.load(tmp_path / "kept" / "out" / "model.onnx").graph.node}
    assert domains == {"", "com.microsoft"}


def test_samples_that_do_not_fit(tmp_path: Path, model: Path) -> None:
    feeds = [*FEEDS, {"image": np.zeros((1, 4, 16, 16), np.float32)}]
    with pytest.raises(StageError, match="cannot run on the sample 'sample 3'"):
        quantize(tmp_path, model, feeds)


@pytest.mark.parametrize("method", ["minmax", "entropy", "percentile", "distribution"])
def test_constant_samples_are_fine(tmp_path: Path, model: Path, method: str) -> None:
    feeds = [{"image": np.zeros((1, 3, 16, 16), np.float32)}] * 2
    assert quantize(tmp_path, model, feeds, calibration=method)["quantized"]["Conv"] == 2


@pytest.mark.parametrize("method", ["minmax", "entropy", "percentile", "distribution"])
def test_a_tensor_without_finite_range_is_named(tmp_path: Path, method: str) -> None:
    nodes = [
        helper.make_node("Log", ["x"], ["logarithm"]),
        helper.make_node("MatMul", ["logarithm", "w"], ["y"]),
    ]
    inputs, outputs = [models.value("x", [2, 8])], [models.value("y", [2, 4])]
    proto = models.make_model(nodes, inputs, outputs, (models.tensor("w", models.weights(8, 4)),))
    model = models.save(proto, tmp_path / "model")
    feeds = [{"x": np.zeros((2, 8), np.float32)}]  # its logarithm has no end
    with pytest.raises(StageError, match="non-finite values") as caught:
        quantize(tmp_path, model, feeds, calibration=method)
    assert "tensor 'logarithm'" in caught.value.details


def test_weights_of_constant_nodes_are_quantised(tmp_path: Path) -> None:
    proto = models.cnn()
    constants = [helper.make_node("Constant", [], [item.name], value=item) for item in proto.graph.initializer]
    del proto.graph.initializer[:]
    nodes = [*constants, *proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    model = models.save(proto, tmp_path / "model")
    assert quantize(tmp_path / "a", model)["tensors"]["weights"] == 6
    assert quantize(tmp_path / "b", model, preprocess=False)["tensors"]["weights"] == 6


def test_external_weights(tmp_path: Path) -> None:
    model = models.save_external(models.cnn(), tmp_path / "model")
    plain = models.save(models.cnn(), tmp_path / "plain")
    quantize(tmp_path / "a", model)
    quantize(tmp_path / "b", plain)
    outputs = [(tmp_path / part / "out" / "model.onnx").read_bytes() for part in "ab"]
    assert outputs[0] == outputs[1]
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["model.onnx", "weights.bin"]


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("Failed to allocate memory for requested buffer")])
def test_too_little_memory(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    class Session:
        def run(self, *_: Any) -> None:
            raise error

    real = calibration.run_sample
    monkeypatch.setattr(calibration, "run_sample", lambda _, sample, names=None: real(Session(), sample, names))
    assert samples.run_sample is real
    with pytest.raises(StageError, match="not enough memory to calibrate"):
        quantize(tmp_path, model)


@pytest.mark.parametrize("name", models.HOSTILE_NAMES[:12])
def test_hostile_names_stay_names(tmp_path: Path, name: str) -> None:
    nodes = [helper.make_node("MatMul", [name, "w"], [f"{name} out"], name=name)]
    value, out = models.value(name, [2, 8]), models.value(f"{name} out", [2, 4])
    proto = models.make_model(nodes, [value], [out], (models.tensor("w", models.weights(8, 4)),))
    model = models.save(proto, tmp_path / "model")
    facts = quantize(tmp_path, model, normal_feeds(name, (2, 8), 2))
    assert facts["quantized"] == {"MatMul": 1}
