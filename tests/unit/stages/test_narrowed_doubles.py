"""A provider without float64 gets a model that computes in float32, with the ports of the original."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from bundler.onnxkit.structure import find_doubles
from bundler.stages.optimize.doubles import narrow_doubles
from tests.support import models
from tests.support.stage_calls import call_stage

DOUBLE = TensorProto.DOUBLE


def inner() -> ModelProto:
    """`y = x * 2 + 3`, in float64 between two casts, with a constant in a branch."""
    three = helper.make_node("Constant", [], ["three"], value=numpy_helper.from_array(np.array([3.0]), "c"))
    sums = [helper.make_node("Add", ["twice", "three"], ["sum"])]
    branch = helper.make_graph([three, *sums], "then", [], [helper.make_tensor_value_info("sum", DOUBLE, None)])
    other = helper.make_node("Identity", ["twice"], ["same"])
    skip = helper.make_graph([other], "else", [], [helper.make_tensor_value_info("same", DOUBLE, None)])
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=DOUBLE),
        helper.make_node("Mul", ["wide", "two"], ["twice"]),
        helper.make_node("If", ["yes"], ["chosen"], then_branch=branch, else_branch=skip),
        helper.make_node("Cast", ["chosen"], ["y"], to=TensorProto.FLOAT),
    ]
    weights = (numpy_helper.from_array(np.array([2.0]), "two"), numpy_helper.from_array(np.array(True), "yes"))
    return models.make_model(nodes, [models.value("x", [4])], [models.value("y", [4])], weights)


def outer() -> ModelProto:
    """The same in float64 from end to end, with a number that float32 has not; the sum is read, and an output too."""
    nodes = [
        helper.make_node("Mul", ["x", "two"], ["twice"]),
        helper.make_node("Min", ["twice", "huge"], ["least"]),
        helper.make_node("Add", ["least", "three"], ["y"]),
        helper.make_node("Neg", ["y"], ["z"]),
    ]
    values = {"two": 2.0, "three": 3.0, "huge": 1e300}
    weights = tuple(numpy_helper.from_array(np.array([value]), name) for name, value in values.items())
    ports = [helper.make_tensor_value_info(name, DOUBLE, [4]) for name in ("x", "y", "z")]
    return models.make_model(nodes, ports[:1], ports[1:], weights)


@pytest.mark.parametrize("make", [inner, outer])
def test_outputs_and_ports_stay(tmp_path: Path, make: Callable[[], ModelProto]) -> None:
    source = models.save(make(), tmp_path)
    first = onnxruntime.InferenceSession(source)
    narrowed = narrow_doubles(source, tmp_path / "narrow.onnx")
    assert narrowed is not None
    second = onnxruntime.InferenceSession(narrowed)
    for ports in ("get_inputs", "get_outputs"):
        pairs = zip(getattr(first, ports)(), getattr(second, ports)(), strict=True)
        assert all((one.name, one.type, one.shape) == (two.name, two.type, two.shape) for one, two in pairs)
    (port,) = first.get_inputs()
    x = np.linspace(-1, 1, 4).astype(np.float64 if "double" in port.type else np.float32)
    for one, two in zip(first.run(None, {"x": x}), second.run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6)


def test_nothing_inside_is_float64(tmp_path: Path) -> None:
    source = models.save(inner(), tmp_path)
    result = call_stage("optimize", tmp_path / "out", {"model": source}, single_precision=True)
    assert find_doubles(onnx.load(tmp_path / "out" / "model.onnx")) == ()
    assert [note.text for note in result.notes] == [
        "what the model computes in float64 is computed in float32, because the provider has no float64"
    ]


def test_an_optional_input_keeps_its_default(tmp_path: Path) -> None:
    model = outer()
    model.graph.input.append(helper.make_tensor_value_info("two", DOUBLE, [1]))
    source = models.save(model, tmp_path)
    narrowed = narrow_doubles(source, tmp_path / "narrow.onnx")
    assert narrowed is not None
    x = np.linspace(-1, 1, 4)
    for given in ({"x": x}, {"x": x, "two": np.array([5.0])}):
        before, after = (onnxruntime.InferenceSession(path).run(None, given) for path in (source, narrowed))
        np.testing.assert_allclose(before, after, rtol=1e-6)


def test_ports_of_more_than_one_tensor_stay(tmp_path: Path) -> None:
    node = helper.make_node("SequenceConstruct", ["x"], ["y"])
    x, y = helper.make_tensor_value_info("x", DOUBLE, [2]), helper.make_tensor_sequence_value_info("y", DOUBLE, [2])
    source = models.save(models.make_model([node], [x], [y]), tmp_path)
    assert narrow_doubles(source, tmp_path / "narrow.onnx") is None
