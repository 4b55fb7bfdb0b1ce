"""Tiny models that leave sizes open and are particular about them, or about the values of their inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from tests.support.models import make_model, tensor, value, weights

INT64, BOOL = TensorProto.INT64, TensorProto.BOOL


def only_batch(batch: int, width: int = 4) -> ModelProto:
    """x[batch, width], whose batch is open by name and must be `batch`."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("Relu", ["r"], ["y"])]
    initializers = (tensor("shape", np.array([batch, width], np.int64)),)
    return make_model(nodes, [value("x", ["batch", width])], [value("y", ["batch", width])], initializers)


def only_square(side: int) -> ModelProto:
    """image[?, 3, ?, ?] without names, of any batch, that runs at one height and width: positions are learnt."""
    nodes = [helper.make_node("Add", ["image", "positions"], ["y"])]
    shape = [None, 3, None, None]
    initializers = (tensor("positions", weights(1, 3, side, side)),)
    return make_model(nodes, [value("image", shape)], [value("y", shape)], initializers)


def only_features(count: int, *, channels: bool = False) -> ModelProto:
    """x[rows, features], or x[rows, features, length]: both are open, and the weights take one number of features."""
    axes = ["rows", "features", *(["length"] if channels else [])]
    shape = (5, count, 3) if channels else (count, 5)
    nodes = [helper.make_node("Conv" if channels else "Gemm", ["x", "w"], ["y"])]
    return make_model(nodes, [value("x", axes)], [value("y", [None] * len(axes))], (tensor("w", weights(*shape)),))


def impossible_batch(side: int = 320) -> ModelProto:
    """Rows so wide that a batch of thousands would be gigabytes, and a graph that takes no batch at all."""
    nodes = [helper.make_node("Reshape", ["image", "shape"], ["y"])]
    shape = ["batch", 3, side, side]
    initializers = (tensor("shape", np.array([7, 11, 13], np.int64)),)
    return make_model(nodes, [value("image", shape)], [value("y", [7, 11, 13])], initializers)


def _branch(name: str, nodes: list[NodeProto], shape: list[Any], element: int = TensorProto.FLOAT) -> GraphProto:
    return helper.make_graph(nodes, name, [], [value(nodes[-1].output[0], shape, element)])


def recurrent_audio() -> ModelProto:
    """A detector of speech: samples[?, ?], state[2, ?, 8], and a sample rate that chooses the window of 512 or 256.

    The samples must be a whole number of windows, and the batch of the state that of the samples.
    """
    windows = {
        rate: _branch(f"at_{rate}", [helper.make_node("Identity", [f"shape_{rate}"], [f"window_{rate}"])], [3], INT64)
        for rate in (16000, 8000)
    }
    nodes = [
        helper.make_node("Equal", ["sr", "rate"], ["fast"]),
        helper.make_node("If", ["fast"], ["shape"], then_branch=windows[16000], else_branch=windows[8000], name="rate"),
        helper.make_node("Reshape", ["samples", "shape"], ["windows"]),
        helper.make_node("ReduceMean", ["windows"], ["level"], axes=[1, 2], keepdims=1),
        helper.make_node("Reshape", ["level", "column"], ["levels"]),
        helper.make_node("Add", ["state", "levels"], ["next"]),
    ]
    initializers = (
        tensor("rate", np.array(16000, np.int64)),
        tensor("shape_16000", np.array([0, -1, 512], np.int64)),
        tensor("shape_8000", np.array([0, -1, 256], np.int64)),
        tensor("column", np.array([1, -1, 1], np.int64)),
    )
    inputs = [value("samples", [None, None]), value("state", [2, None, 8]), value("sr", [], INT64)]
    return make_model(nodes, inputs, [value("next", [2, None, 8])], initializers)


def endless_loop() -> ModelProto:
    """x[n] is added to itself 2^62 times."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go_in"], ["go_out"]), helper.make_node("Add", ["sum", "x"], ["next"])],
        "body",
        [value("turn", [], INT64), value("go_in", [], BOOL), value("sum", ["n"])],
        [value("go_out", [], BOOL), value("next", ["n"])],
    )
    nodes = [helper.make_node("Loop", ["trips", "go", "x"], ["y"], body=body)]
    initializers = (tensor("trips", np.array(1 << 62, np.int64)), tensor("go", np.array(True)))
    return make_model(nodes, [value("x", ["n"])], [value("y", ["n"])], initializers)


def endless_on_true() -> ModelProto:
    """x[n] is added to itself 2^62 times where `forever` is true and `more` is not, as in none of the first samples."""
    model = endless_loop()
    model.graph.node[0].input[1] = "both"
    model.graph.node.insert(0, helper.make_node("And", ["calm", "forever"], ["both"]))
    model.graph.node.insert(0, helper.make_node("Not", ["more"], ["calm"]))
    model.graph.input.extend([value("more", [], BOOL), value("forever", [], BOOL)])
    return model


def chosen(condition: list[NodeProto], inputs: list[Any], initializers: tuple[TensorProto, ...] = ()) -> ModelProto:
    """x[1, 3] doubled where `condition` makes `yes` true, negated elsewhere."""
    node = helper.make_node(
        "If",
        ["yes"],
        ["y"],
        name="choice",
        then_branch=_branch("then", [helper.make_node("Add", ["x", "x"], ["doubled"])], [1, 3]),
        else_branch=_branch("else", [helper.make_node("Neg", ["x"], ["negated"])], [1, 3]),
    )
    return make_model([*condition, node], [value("x", [1, 3]), *inputs], [value("y", [1, 3])], initializers)


def chosen_by_steps(limit: int) -> ModelProto:
    """Chosen by an integer that is more than `limit`."""
    condition = [helper.make_node("Greater", ["steps", "limit"], ["yes"])]
    return chosen(condition, [value("steps", [], INT64)], (tensor("limit", np.array(limit, np.int64)),))


def never_chosen() -> ModelProto:
    """The sum of squares is never below zero, so one branch never runs."""
    condition = [
        helper.make_node("Mul", ["x", "x"], ["squares"]),
        helper.make_node("ReduceSum", ["squares"], ["sum"], keepdims=0),
        helper.make_node("Less", ["sum", "zero"], ["yes"]),
    ]
    return chosen(condition, [], (tensor("zero", np.array(0, np.float32)),))


def nested_choice() -> ModelProto:
    """`outer` chooses, and inside the way that it chooses `inner`, which is `outer` negated, never does."""
    deep = helper.make_node(
        "If",
        ["inner"],
        ["deep"],
        name="inside",
        then_branch=_branch("deep_then", [helper.make_node("Add", ["x", "x"], ["doubled"])], [1, 3]),
        else_branch=_branch("deep_else", [helper.make_node("Neg", ["x"], ["negated"])], [1, 3]),
    )
    node = helper.make_node(
        "If",
        ["outer"],
        ["y"],
        name="outside",
        then_branch=_branch("then", [deep], [1, 3]),
        else_branch=_branch("else", [helper.make_node("Abs", ["x"], ["absolute"])], [1, 3]),
    )
    nodes = [helper.make_node("Not", ["outer"], ["inner"]), node]
    return make_model(nodes, [value("x", [1, 3]), value("outer", [], BOOL)], [value("y", [1, 3])])


def refuses_padding() -> ModelProto:
    """x[batch, 4] is divided into as many integers as the mask has ones: only whole rows fit."""
    nodes = [
        helper.make_node("ReduceMin", ["attention_mask"], ["least"], keepdims=0),
        helper.make_node("Mul", ["least", "four"], ["width"]),
        helper.make_node("Unsqueeze", ["width", "zero"], ["last"]),
        helper.make_node("Concat", ["any", "last"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"], allowzero=1),
    ]
    initializers = (
        tensor("four", np.array(4, np.int64)),
        tensor("zero", np.array([0], np.int64)),
        tensor("any", np.array([-1], np.int64)),
    )
    inputs = [value("x", ["batch", 4]), value("attention_mask", ["batch", 4], INT64)]
    return make_model(nodes, inputs, [value("y", [None, 4])], initializers)
