"""Integer outputs that are rounded numbers are distinguished from labels, indices and ids."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from bundler.onnxkit.quantities import find_quantities
from tests.support import models

NODES = {
    "rounded": [("Round", ["x"], "r", {}), ("Cast", ["r"], "y", {"to": TensorProto.INT64})],
    "scaled": [("Mul", ["x", "two"], "m", {}), ("Cast", ["m"], "y", {"to": TensorProto.INT32})],
    "quantised": [("QuantizeLinear", ["x", "scale", "zero"], "y", {})],
    "reshaped": [
        ("Floor", ["x"], "f", {}),
        ("Cast", ["f"], "c", {"to": TensorProto.INT64}),
        ("Reshape", ["c", "shape"], "y", {}),
    ],
    "clamped pixels": [
        ("Mul", ["x", "two"], "m", {}),
        ("Clip", ["m", "low", "high"], "c", {}),
        ("Transpose", ["c"], "t", {"perm": [1, 0]}),
        ("Cast", ["t"], "y", {"to": TensorProto.INT64}),
    ],
    "pixels limited by two": [
        ("Mul", ["x", "two"], "m", {}),
        ("Min", ["high", "m"], "i", {}),
        ("Max", ["i", "low"], "a", {}),
        ("Cast", ["a"], "y", {"to": TensorProto.INT64}),
    ],
    "limited label": [
        ("ArgMax", ["x"], "a", {}),
        ("Cast", ["a"], "f", {"to": TensorProto.FLOAT}),
        ("Add", ["f", "two"], "s", {}),
        ("Clip", ["s", "low", "high"], "c", {}),
        ("Cast", ["c"], "y", {"to": TensorProto.INT64}),
    ],
    "limited input": [("Clip", ["x", "low", "high"], "c", {}), ("Cast", ["c"], "y", {"to": TensorProto.INT64})],
    "label": [("ArgMax", ["x"], "y", {})],
    "shifted label": [
        ("ArgMax", ["x"], "a", {}),
        ("Cast", ["a"], "f", {"to": TensorProto.FLOAT}),
        ("Add", ["f", "two"], "s", {}),
        ("Cast", ["s"], "y", {"to": TensorProto.INT64}),
    ],
    "threshold": [("Greater", ["x", "two"], "g", {}), ("Cast", ["g"], "y", {"to": TensorProto.INT64})],
    "chosen ids": [
        ("Greater", ["x", "two"], "g", {}),
        ("Where", ["g", "two", "scale"], "w", {}),
        ("Cast", ["w"], "y", {"to": TensorProto.INT64}),
    ],
    "codebook": [
        ("Round", ["x"], "r", {}),
        ("Mul", ["r", "two"], "m", {}),
        ("Split", ["m"], "left,right", {"axis": 1, "num_outputs": 2}),
        ("Add", ["left", "right"], "a", {}),
        ("Cast", ["a"], "y", {"to": TensorProto.INT64}),
    ],
    "places": [("NonZero", ["x"], "y", {})],
}


@pytest.mark.parametrize("name", NODES)
def test_only_what_arithmetic_rounds_is_a_quantity(name: str) -> None:
    nodes = [helper.make_node(kind, ins, out.split(","), **attributes) for kind, ins, out, attributes in NODES[name]]
    constants = (
        models.tensor("two", np.array([2], np.float32)),
        models.tensor("scale", np.array(0.1, np.float32)),
        models.tensor("zero", np.array(0, np.uint8)),
        models.tensor("shape", np.array([-1])),
        models.tensor("low", np.array(0, np.float32)),
        models.tensor("high", np.array(255, np.float32)),
    )
    model = models.make_model(
        nodes, [models.value("x", [4, 4])], [models.value("y", None, TensorProto.INT64)], constants
    )
    rounded = ("rounded", "scaled", "quantised", "reshaped", "clamped pixels", "pixels limited by two")
    expected = ("y",) if name in rounded else ()
    assert find_quantities(model) == expected
