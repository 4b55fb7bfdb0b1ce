"""The work of one run is counted from the graph: what it decides must be the same on every machine."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from bundler.onnxkit.seeded_sets import count_affordable
from bundler.onnxkit.signatures import model_signature
from bundler.onnxkit.workload import count_multiplications
from tests.support import models

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"


def test_a_small_network_by_hand() -> None:
    first, second, head = 16 * 16 * 8 * 3 * 9, 8 * 8 * 16 * 8 * 9, 16 * 5
    assert count_multiplications(models.cnn(), {"image": (1, 3, 16, 16)}) == first + second + head
    assert count_multiplications(models.cnn(), {"image": (2, 3, 16, 16)}) == 2 * (first + second + head)


def test_where_shapes_are_lost_weights_count_for_each_position() -> None:
    nodes = [
        helper.make_node("Mystery", ["x"], ["lost"], domain="com.example"),
        helper.make_node("MatMul", ["lost", "w"], ["y"]),
    ]
    weight = (models.tensor("w", models.weights(8, 4)),)
    model = models.make_model(nodes, [models.value("x", ["n", "t", 8])], [models.value("y", None)], weight)
    assert count_multiplications(model, {"x": (2, 5, 8)}) == 2 * 5 * 8 * 4


@pytest.mark.parametrize(("name", "billions"), [("resnet50", 3.9), ("squeezenet", 0.35), ("vgg19", 19.6)])
def test_published_networks_have_their_published_work(name: str, billions: float) -> None:
    model = onnx.load(LIGHT / f"light_{name}.onnx")
    (port,) = model_signature(model).inputs
    shapes = {port.name: (1, 3, 224, 224)}
    assert count_multiplications(model, shapes) / 1e9 == pytest.approx(billions, rel=0.1)


def test_a_graph_that_shape_inference_refuses_is_counted_without_it() -> None:
    model = models.cnn()
    model.graph.node[0].op_type = "Con\x00v"
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    assert count_multiplications(model, {"image": (1, 3, 16, 16)}) > 0


def test_many_samples_of_light_models_and_three_of_heavy_ones() -> None:
    assert count_affordable(8, 3, 10**6, 10**5) == 8
    assert count_affordable(8, 3, 10**9, 10**5) == 6
    assert count_affordable(8, 3, 10**12, 10**5) == 3
    assert count_affordable(8, 3, 10**6, 10**8) == 3
    assert count_affordable(1, 3, 10**12, 10**8) == 1
    assert count_affordable(16, 16, 10**12, 10**8) == 16, "calibration gets all that it asks for"
