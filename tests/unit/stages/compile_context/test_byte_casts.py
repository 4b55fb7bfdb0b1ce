"""Bytes that are cast to floating point stay numbers, for compilers that take them for truth values."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

from bundler.stages.compile_context.byte_casts import widen_byte_casts
from tests.support import models


def camera(kind: int, floating: int) -> ModelProto:
    """A picture as cameras give it, turned and cast."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["turned"], perm=[0, 3, 1, 2]),
        helper.make_node("Cast", ["turned"], ["numbers"], to=floating),
        helper.make_node("Cast", ["numbers"], ["y"], to=TensorProto.FLOAT),
    ]
    return models.make_model(nodes, [models.value("x", [1, 4, 4, 3], kind)], [models.value("y", [1, 3, 4, 4])])


@pytest.mark.parametrize("floating", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE])
def test_they_are_cast_through_int32_and_give_the_same(floating: int) -> None:
    before, after = camera(TensorProto.UINT8, floating), camera(TensorProto.UINT8, floating)
    assert widen_byte_casts(after) == 1
    assert [node.op_type for node in after.graph.node] == ["Transpose", "Cast", "Cast", "Cast"]
    onnx.checker.check_model(after, full_check=True)
    picture = np.arange(48, dtype=np.uint8).reshape(1, 4, 4, 3)
    found, wanted = (ReferenceEvaluator(model).run(None, {"x": picture})[0] for model in (after, before))
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("kind", [TensorProto.INT32, TensorProto.BOOL, TensorProto.FLOAT])
def test_nothing_else_is_changed(kind: int) -> None:
    model = camera(kind, TensorProto.FLOAT16)
    before = model.SerializeToString()
    assert widen_byte_casts(model) == 0
    assert model.SerializeToString() == before
