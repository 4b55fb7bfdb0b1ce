"""What inspection finds of values and convolutions that accelerators do not compute, or compute wrong."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from bundler.onnxkit.structure import find_doubles
from bundler.stages.inspect.operators import count_uneven_convolutions
from tests.support import models


def convolution(inputs: int, outputs: int, *, group: int = 1, constant: bool = False, kernel: int = 3) -> ModelProto:
    weight = numpy_helper.from_array(np.zeros((outputs, inputs // group, kernel, kernel), np.float32), "w")
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], group=group)]
    if constant:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=weight))
    x, y = models.value("x", [1, inputs, 8, 8]), models.value("y", [1, outputs, 6, 6])
    return models.make_model(nodes, [x], [y], () if constant else (weight,))


@pytest.mark.parametrize(
    ("inputs", "outputs", "count"),
    [(6, 16, 1), (9, 16, 1), (15, 16, 1), (3, 16, 0), (5, 16, 0), (8, 16, 0), (12, 16, 0), (9, 15, 0)],
)
@pytest.mark.parametrize("constant", [False, True])
def test_convolutions_are_counted_by_their_channels(inputs: int, outputs: int, count: int, *, constant: bool) -> None:
    assert count_uneven_convolutions(convolution(inputs, outputs, constant=constant)) == count


def test_weights_that_are_dequantised_are_followed() -> None:
    model = convolution(6, 16)
    model.graph.node[0].input[1] = "wide"
    model.graph.node.insert(0, helper.make_node("DequantizeLinear", ["w", "s"], ["wide"]))
    assert count_uneven_convolutions(model) == 1


@pytest.mark.parametrize(
    ("outputs", "group", "count"),
    [
        (10, 2, 1),
        (12, 2, 1),
        (14, 2, 1),
        (20, 4, 1),
        (36, 4, 1),
        (8, 2, 0),
        (24, 2, 0),
        (12, 4, 0),
        (18, 3, 0),
        (21, 3, 0),
    ],
)
def test_convolutions_in_groups_are_counted_by_the_channels_of_a_group(outputs: int, group: int, count: int) -> None:
    assert count_uneven_convolutions(convolution(12, outputs, group=group)) == count


def test_convolutions_of_single_elements_are_right() -> None:
    assert count_uneven_convolutions(convolution(6, 16, kernel=1)) == 0
    assert count_uneven_convolutions(convolution(6, 16, kernel=2)) == 1


def test_values_of_float64_are_found_by_name() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.DOUBLE),
        helper.make_node("Add", ["wide", "w"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["y"], to=TensorProto.FLOAT),
    ]
    weight = numpy_helper.from_array(np.ones(3), "w")
    model = models.make_model(nodes, [models.value("x", [3])], [models.value("y", [3])], (weight,))
    assert find_doubles(model) == ("w", "wide")
    assert find_doubles(models.cnn()) == ()
