"""Nodes are left out by the names that they have in the model as it came, whatever the pre-process makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from bundler.model.errors import StageError
from tests.support import models
from tests.support.calibration import normal_feeds, write_set
from tests.support.stage_calls import call_stage

STAGES = ("static", "dynamic")


def layers(count: int = 3) -> onnx.ModelProto:
    """Dense layers as exporters write them: a MatMul and an Add each, which become one Gemm."""
    nodes, tensors, last = [], [], "x"
    for place in range(count):
        nodes += [
            helper.make_node("MatMul", [last, f"w{place}"], [f"m{place}"], name=f"product {place}"),
            helper.make_node("Add", [f"m{place}", f"b{place}"], [f"s{place}"], name=f"sum {place}"),
            helper.make_node("Tanh", [f"s{place}"], [f"t{place}"]),
        ]
        tensors += [
            models.tensor(f"w{place}", models.weights(8, 8, seed=place)),
            models.tensor(f"b{place}", models.weights(8)),
        ]
        last = f"t{place}"
    return models.make_model(nodes, [models.value("x", [2, 8])], [models.value(last, [2, 8])], tuple(tensors))


def normalized() -> onnx.ModelProto:
    """Two convolutions, each with its batch normalisation, which is folded into it."""
    nodes, tensors, last = [], [], "x"
    for place in range(2):
        parts = [f"{part}{place}" for part in ("scale", "bias", "mean", "var")]
        nodes += [
            helper.make_node("Conv", [last, f"w{place}"], [f"c{place}"], name=f"conv {place}", pads=[1, 1, 1, 1]),
            helper.make_node("BatchNormalization", [f"c{place}", *parts], [f"n{place}"], name=f"norm {place}"),
        ]
        tensors += [models.tensor(f"w{place}", models.weights(4, 4, 3, 3, seed=place))]
        tensors += [models.tensor(part, np.full(4, 1 + place, np.float32)) for part in parts]
        last = f"n{place}"
    image, out = models.value("x", [1, 4, 6, 6]), models.value(last, [1, 4, 6, 6])
    return models.make_model(nodes, [image], [out], tuple(tensors))


def quantize(stage: str, folder: Path, proto: onnx.ModelProto, *names: str, **options: Any) -> dict[str, Any]:
    model = models.save(proto, folder / "model")
    shape = tuple(dim.dim_value for dim in proto.graph.input[0].type.tensor_type.shape.dim)
    inputs = {"model": model}
    if stage == "static":
        inputs["samples"] = write_set(model, normal_feeds("x", shape), folder / "samples")
    result = call_stage(f"quantize_{stage}", folder / "out", inputs, exclude_nodes=names, **options)
    return dict(result.facts)


def names_in_eight_bits(folder: Path) -> set[str]:
    """Weights that were quantised, by their names in the original model."""
    model = onnx.load(folder / "out" / "model.onnx")
    return {
        item.name.removesuffix("_quantized") for item in model.graph.initializer if item.name.endswith("_quantized")
    }


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", ["product 1", "sum 1", "product 1/MatMulAddFusion"])
def test_a_product_and_a_sum_that_became_one(tmp_path: Path, stage: str, name: str) -> None:
    facts = quantize(stage, tmp_path, layers(), name, extra={"QuantizeBias": False} if stage == "static" else {})
    assert {place for place in names_in_eight_bits(tmp_path) if place.startswith("w")} == {"w0", "w2"}
    assert facts["exclude_nodes"] == ["product 1/MatMulAddFusion"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", ["conv 1", "norm 1"])
def test_a_normalisation_that_was_folded_into_its_convolution(tmp_path: Path, stage: str, name: str) -> None:
    facts = quantize(stage, tmp_path, normalized(), name)
    assert facts["exclude_nodes"] == ["conv 1"]
    assert sum(facts["quantized"].values()) == 1


@pytest.mark.parametrize("stage", STAGES)
def test_a_node_that_was_computed_beforehand_stands_for_the_one_that_reads_it(tmp_path: Path, stage: str) -> None:
    proto = layers()
    proto.graph.node.insert(0, helper.make_node("Neg", ["w1"], ["negative"], name="negation"))
    next(node for node in proto.graph.node if node.name == "product 1").input[1] = "negative"
    facts = quantize(stage, tmp_path, proto, "negation")
    assert facts["exclude_nodes"] == ["product 1/MatMulAddFusion"]
    assert not {"w1", "negative"} & names_in_eight_bits(tmp_path)


@pytest.mark.parametrize("stage", STAGES)
def test_a_node_whose_successor_has_no_name(tmp_path: Path, stage: str) -> None:
    proto = layers()
    for node in proto.graph.node:
        if node.name != "negation":
            node.name = ""
    proto.graph.node.insert(0, helper.make_node("Neg", ["w1"], ["negative"], name="negation"))
    next(node for node in proto.graph.node if node.output[0] == "m1").input[1] = "negative"
    facts = quantize(stage, tmp_path, proto, "negation")
    assert len(facts["exclude_nodes"]) == 1
    assert facts["exclude_nodes"][0]
    assert {"w0", "w2"} <= names_in_eight_bits(tmp_path)
    assert not {"w1", "negative"} & names_in_eight_bits(tmp_path)


@pytest.mark.parametrize("stage", STAGES)
def test_a_node_without_successor_and_one_that_never_was(tmp_path: Path, stage: str) -> None:
    proto = layers()
    proto.graph.node.append(helper.make_node("Neg", ["w0"], ["unread"], name="idle"))
    with pytest.raises(StageError, match="the excluded node 'idle'") as caught:
        quantize(stage, tmp_path / "idle", proto, "idle")
    assert "preprocess" in str(caught.value.hint)
    quantize(stage, tmp_path / "kept", proto, "idle", preprocess=False)
    with pytest.raises(StageError, match="no node 'produkt 1'") as caught:
        quantize(stage, tmp_path / "misspelt", proto, "produkt 1")
    assert caught.value.hint == "did you mean 'product 1'?"


def test_what_the_search_kept_can_be_given_as_it_is(tmp_path: Path) -> None:
    proto = layers(4)
    outlier = models.weights(8, 8)
    outlier[3, 5] = 4000.0
    next(item for item in proto.graph.initializer if item.name == "w2").CopyFrom(models.tensor("w2", outlier))
    found = quantize(
        "static", tmp_path / "found", proto, keep_float="auto", operators=("Gemm", "MatMul"), least_sqnr_db=20.0
    )
    assert found["kept_nodes"] == ["product 2/MatMulAddFusion"]
    given = quantize("static", tmp_path / "given", proto, *found["kept_nodes"], operators=("Gemm", "MatMul"))
    assert given["exclude_nodes"] == found["kept_nodes"]
    outputs = [(tmp_path / part / "out" / "model.onnx").read_bytes() for part in ("found", "given")]
    assert outputs[0] == outputs[1]
