"""A bias of one row is the same as a flat one, and only flat ones can be quantised per channel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, helper

from bundler.stages.quantize_static.biases import flatten_biases
from tests.support import models
from tests.support.calibration import normal_feeds, write_set
from tests.support.stage_calls import call_stage


def product_and_row(operator: str = "MatMul") -> ModelProto:
    """x[batch, 16] times a matrix, plus a bias [1, 8]."""
    tensors = (models.tensor("w", models.weights(16, 8)), models.tensor("row", models.weights(1, 8, seed=1)))
    nodes = [helper.make_node("Gemm", ["x", "w", "row"], ["y"], name="product")]
    if operator == "MatMul":
        nodes = [
            helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
            helper.make_node("Add", ["p", "row"], ["y"], name="sum"),
        ]
    return models.make_model(nodes, [models.value("x", ["batch", 16])], [models.value("y", ["batch", 8])], tensors)


@pytest.mark.parametrize("operator", ["MatMul", "Gemm"])
@pytest.mark.parametrize(
    "level", [ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL]
)
def test_a_layer_with_a_row_for_a_bias_runs_per_channel_at_every_level(
    tmp_path: Path, operator: str, level: ort.GraphOptimizationLevel
) -> None:
    model = models.save(product_and_row(operator), tmp_path / "model")
    feeds = normal_feeds("x", (4, 16))
    inputs = {"model": model, "samples": write_set(model, feeds, tmp_path / "samples")}
    call_stage("quantize_static", tmp_path / "out", inputs, per_channel=True)
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    quantized = ort.InferenceSession(tmp_path / "out" / "model.onnx", options)
    plain = ort.InferenceSession(model)
    for feed in feeds:
        expected = plain.run(None, feed)[0]
        np.testing.assert_allclose(quantized.run(None, feed)[0], expected, atol=0.05 * float(np.abs(expected).max()))


def test_only_biases_of_one_row_change() -> None:
    graph = product_and_row("Gemm").graph
    assert flatten_biases(graph) == 1
    assert {tensor.name: list(tensor.dims) for tensor in graph.initializer} == {"w": [16, 8], "row": [8]}
    assert flatten_biases(graph) == 0


def test_a_row_that_another_node_reads_stays() -> None:
    graph = product_and_row("Gemm").graph
    graph.node.append(helper.make_node("Add", ["y", "row"], ["z"]))
    assert flatten_biases(graph) == 0
