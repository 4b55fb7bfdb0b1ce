"""Nodes that cost the most accuracy stay in floating point, and no more than that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnxruntime.quantization.qdq_loss_debug import (
    collect_activations,
    compute_activation_error,
    compute_weight_error,
    create_activation_matching,
    create_weight_matching,
    modify_model_output_intermediate_tensors,
)

from bundler.model.errors import StageError
from bundler.model.stage import StageRequest
from bundler.onnxkit.quantization.reference import quiet
from bundler.onnxkit.quantization.samples import open_samples
from bundler.onnxkit.quantization.structures import find_structures
from bundler.onnxkit.quantization.tensor_noise import activation_noise, weight_noise
from bundler.stages.quantize_static.run import run
from tests.support import models
from tests.support.calibration import Feeds, normal_feeds, preprocess_by_hand, quantize_by_hand, write_set
from tests.support.stage_calls import call_stage

FEEDS = normal_feeds("x", (4, 16), 6)


def chain_with_an_outlier() -> onnx.ModelProto:
    """Four matrix products in a row; one weight of the third is so large that int8 loses all others."""
    weights = [models.weights(16, 16, seed=seed) for seed in range(4)]
    weights[2][3, 5] = 4000.0
    nodes, last = [], "x"
    for place in range(4):
        nodes.append(helper.make_node("MatMul", [last, f"w{place}"], [f"m{place}"], name=f"product {place}"))
        nodes.append(helper.make_node("Tanh", [f"m{place}"], [f"t{place}"]))
        last = f"t{place}"
    tensors = tuple(models.tensor(f"w{place}", values) for place, values in enumerate(weights))
    return models.make_model(nodes, [models.value("x", ["batch", 16])], [models.value(last, ["batch", 16])], tensors)


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
def test_only_the_error_source_stays_in_floating_point(tmp_path: Path, form: str) -> None:
    model = models.save(chain_with_an_outlier(), tmp_path / "model")
    inputs = {"model": model, "samples": write_set(model, FEEDS, tmp_path / "samples")}
    options = {"format": form, "keep_float": "auto"}
    bad = call_stage("quantize_static", tmp_path / "bad", inputs, **options, least_sqnr_db=-50.0).facts
    good = call_stage("quantize_static", tmp_path / "good", inputs, **options, least_sqnr_db=20.0).facts
    assert bad["kept_nodes"] == []
    assert bad["sqnr_db"] < 20
    assert good["kept_nodes"] == ["product 2"]
    assert good["sqnr_db"] >= 20
    assert good["quantized"].get("MatMul", good["quantized"].get("QLinearMatMul")) == 3


def chain_to(name: str, kind: int, *nodes: onnx.NodeProto) -> onnx.ModelProto:
    """The chain with these nodes behind it; its only output is their `name`."""
    model = chain_with_an_outlier()
    model.graph.node.extend(nodes)
    constants = {"zero": 0, "masked": -np.inf}
    model.graph.initializer.extend(models.tensor(key, np.float32(value)) for key, value in constants.items())
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info(name, kind, None))
    return model


def test_labels_alone_say_that_nothing_is_measured(tmp_path: Path) -> None:
    labels = helper.make_node("ArgMax", ["t3"], ["label"], axis=1)
    model = models.save(chain_to("label", TensorProto.INT64, labels), tmp_path / "model")
    inputs = {"model": model, "samples": write_set(model, FEEDS, tmp_path / "samples")}
    result = call_stage("quantize_static", tmp_path / "out", inputs, keep_float="auto")
    assert (result.facts["kept_nodes"], result.facts["sqnr_db"]) == ([], None)
    assert [note.level for note in result.notes if "no output has floating-point numbers" in note.text] == ["warning"]


def test_masked_outputs_are_measured_where_they_are_finite(tmp_path: Path) -> None:
    mask = helper.make_node("Less", ["x", "zero"], ["mask"]), helper.make_node("Where", ["mask", "masked", "t3"], ["y"])
    model = models.save(chain_to("y", TensorProto.FLOAT, *mask), tmp_path / "model")
    inputs = {"model": model, "samples": write_set(model, FEEDS, tmp_path / "samples")}
    facts = call_stage("quantize_static", tmp_path / "out", inputs, keep_float="auto").facts
    assert "product 2" in facts["kept_nodes"]
    assert 20 <= facts["sqnr_db"] < 100


def test_an_output_of_another_size_is_only_noise(tmp_path: Path) -> None:
    nodes = (
        helper.make_node("Greater", ["t3", "zero"], ["large"]),
        helper.make_node("Compress", ["t3", "flat"], ["y"]),
        helper.make_node("Reshape", ["large", "line"], ["flat"]),
    )
    model = chain_to("y", TensorProto.FLOAT, nodes[0], nodes[2], nodes[1])
    model.graph.initializer.append(models.tensor("line", np.array([-1], np.int64)))
    saved = models.save(model, tmp_path / "model")
    inputs = {"model": saved, "samples": write_set(saved, FEEDS, tmp_path / "samples")}
    with pytest.raises(StageError, match="does not reach 20 dB"):
        call_stage("quantize_static", tmp_path / "out", inputs, keep_float="auto", operators=["MatMul"])


def test_what_half_of_the_nodes_cannot_reach_is_refused_soon(tmp_path: Path) -> None:
    model = models.save(chain_with_an_outlier(), tmp_path / "model")
    request = StageRequest(
        inputs={"model": model, "samples": write_set(model, FEEDS, tmp_path / "samples")},
        options={"keep_float": "auto", "least_sqnr_db": 500.0},
        output=tmp_path / "out",
    )
    request.output.mkdir()
    texts = []
    with pytest.raises(StageError, match="does not reach 500 dB") as caught:
        run(request, lambda _, text: texts.append(text))
    assert "all 4 nodes quantised" in caught.value.details[0]
    assert "the worst 2 in floating point" in caught.value.details[1]
    assert [text for text in texts if text.startswith("trial ")] == [
        *(f"trial {number} of at most 28: the noise of 1 nodes alone" for number in range(1, 5)),
        "trial 5 of at most 28: 2 nodes in floating point",
    ]


def test_noise_is_what_the_reference_finds(tmp_path: Path) -> None:
    plain = preprocess_by_hand(models.save(models.cnn(), tmp_path), tmp_path / "plain.onnx")
    feeds = normal_feeds("image", (1, 3, 16, 16), 3)
    quantize_by_hand(plain, feeds, tmp_path / "quantized.onnx", per_channel=True)
    samples = open_samples(write_set(plain, feeds, tmp_path / "samples"))
    with quiet():
        for name in ("plain", "quantized"):
            modify_model_output_intermediate_tensors(
                str(tmp_path / f"{name}.onnx"), str(tmp_path / f"{name}-outputs.onnx")
            )
        clean, noisy = (
            collect_activations(str(tmp_path / f"{name}-outputs.onnx"), Feeds(feeds)) for name in ("plain", "quantized")
        )
        activations = compute_activation_error(create_activation_matching(noisy, clean))
        weights = compute_weight_error(
            create_weight_matching(str(tmp_path / "plain.onnx"), str(tmp_path / "quantized.onnx"))
        )
    found = activation_noise(plain, tmp_path / "quantized.onnx", samples, tmp_path)
    assert found.keys() == activations.keys()
    for name, errors in activations.items():
        assert found[name].decibels == pytest.approx(errors["qdq_err"], abs=1e-2)
    ours = weight_noise(plain, tmp_path / "quantized.onnx")
    assert {name: pytest.approx(value, abs=1e-2) for name, value in weights.items()} == {
        name: noise.decibels for name, noise in ours.items()
    }


def gated() -> onnx.ModelProto:
    """A stem, a depthwise convolution, a squeeze-and-excite branch, a wide convolution and a grouped one."""
    shapes = {
        "stem": (32, 3, 3, 3),
        "depthwise": (32, 1, 3, 3),
        "reduce": (24, 32, 1, 1),
        "expand": (32, 24, 1, 1),
        "wide": (64, 32, 1, 1),
        "grouped": (64, 32, 1, 1),
    }
    nodes = [
        helper.make_node("Conv", ["image", "stem.w"], ["a"], pads=[1, 1, 1, 1], name="stem"),
        helper.make_node("Conv", ["a", "depthwise.w"], ["b"], pads=[1, 1, 1, 1], group=32, name="depthwise"),
        helper.make_node("GlobalAveragePool", ["b"], ["pool"]),
        helper.make_node("Conv", ["pool", "reduce.w"], ["r"], name="reduce"),
        helper.make_node("Relu", ["r"], ["rr"]),
        helper.make_node("Conv", ["rr", "expand.w"], ["e"]),  # without a name
        helper.make_node("HardSigmoid", ["e"], ["gate"]),
        helper.make_node("Mul", ["b", "gate"], ["c"]),
        helper.make_node("Conv", ["c", "wide.w"], ["d"], name="wide"),
        helper.make_node("Conv", ["d", "grouped.w"], ["y"], group=2, name="grouped"),
    ]
    tensors = tuple(
        models.tensor(f"{name}.w", models.weights(*shape, seed=seed))
        for seed, (name, shape) in enumerate(shapes.items())
    )
    image, out = models.value("image", [1, 3, 8, 8]), models.value("y", [1, 64, 8, 8])
    return models.make_model(nodes, [image], [out], tensors)


def test_structures_that_gain_little_from_int8(tmp_path: Path) -> None:
    proto = gated()
    assert find_structures(proto, ["depthwise"]) == ("depthwise",)
    assert find_structures(proto, ["narrow"]) == ("stem",)
    assert find_structures(proto, ["squeeze"]) == ("reduce", "")
    model = models.save(proto, tmp_path / "model")
    feeds = [{"image": np.ones((1, 3, 8, 8), np.float32)}]
    facts = call_stage(
        "quantize_static",
        tmp_path / "out",
        {"model": model, "samples": write_set(model, feeds, tmp_path / "samples")},
        operators=("Conv",),
        exclude_structures=("depthwise", "narrow", "squeeze"),
    ).facts
    assert facts["quantized"] == {"Conv": 2}
    assert len(facts["exclude_nodes"]) == 4
