"""Small files that ask for much: nodes without end, loops without end, more memory than there is."""

from __future__ import annotations

import itertools

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from tests.support.models import OPSET, make_model, tensor, value

DOMAIN = "nested"
_IMPORTS = [helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, 1)]


def nested_functions(*, depth: int, calls: int) -> ModelProto:
    """Functions that call the next one `calls` times each: `calls ** depth` nodes in a file of a kilobyte."""
    functions = [_function(level, _chain(level, calls)) for level in range(1, depth)]
    functions.append(_function(depth, [helper.make_node("Relu", ["x"], ["y"])]))
    return _calling("level1", functions)


def calling_itself() -> ModelProto:
    """A function that calls itself, which the format forbids."""
    return _calling("level1", [_function(1, [helper.make_node("level1", ["x"], ["y"], domain=DOMAIN)])])


def _calling(name: str, functions: list[FunctionProto]) -> ModelProto:
    nodes = [helper.make_node(name, ["x"], ["y"], domain=DOMAIN)]
    model = make_model(nodes, [value("x", [1, 3])], [value("y", [1, 3])], domains=((DOMAIN, 1),))
    model.functions.extend(functions)
    return model


def _function(level: int, nodes: list[NodeProto]) -> FunctionProto:
    return helper.make_function(DOMAIN, f"level{level}", ["x"], ["y"], nodes, _IMPORTS)


def _chain(level: int, calls: int) -> list[NodeProto]:
    names = ["x", *(f"v{place}" for place in range(calls - 1)), "y"]
    return [
        helper.make_node(f"level{level + 1}", [before], [after], domain=DOMAIN)
        for before, after in itertools.pairwise(names)
    ]


def endless_loop() -> ModelProto:
    """A loop of nine quintillion turns, each of one small addition."""
    nodes = [helper.make_node("Add", ["carried", "carried"], ["next"]), *_going_on()]
    return _loop(nodes, "next")


def endless_empty_loop() -> ModelProto:
    """The same with next to nothing in each turn."""
    return _loop([*_going_on(), helper.make_node("Identity", ["carried"], ["next"])], "next")


def growing_loop() -> ModelProto:
    """Each of its turns doubles a tensor of three numbers."""
    nodes = [helper.make_node("Concat", ["carried", "carried"], ["next"], axis=0), *_going_on()]
    return _loop(nodes, "next", shape=["n"])


def _going_on() -> list[NodeProto]:
    return [helper.make_node("Identity", ["again"], ["still"])]


def _loop(nodes: list[NodeProto], result: str, shape: list[int | str] | None = None) -> ModelProto:
    carried = value("carried", shape or [3])
    inputs = [value("turn", [], TensorProto.INT64), value("again", [], TensorProto.BOOL), carried]
    body: GraphProto = helper.make_graph(
        nodes, "body", inputs, [value("still", [], TensorProto.BOOL), value(result, shape or [3])]
    )
    loop = [helper.make_node("Loop", ["turns", "go", "x"], ["y"], body=body)]
    constants = (tensor("turns", np.array(np.iinfo(np.int64).max)), tensor("go", np.array(True)))
    return make_model(loop, [value("x", [3])], [value("y", shape or [3])], constants)


def large_input(*sizes: int) -> ModelProto:
    """Takes an input of these sizes and answers its sum."""
    nodes = [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)]
    return make_model(nodes, [value("x", list(sizes))], [value("y", [])])


def large_constant(*sizes: int) -> ModelProto:
    """Makes a tensor of these sizes from a shape in the file, and adds its sum to the input."""
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["ones"], value=tensor("one", np.ones(1, np.float32))),
        helper.make_node("ReduceSum", ["ones"], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    shape = tensor("shape", np.array(sizes, np.int64))
    return make_model(nodes, [value("x", [3])], [value("y", [3])], (shape,))


def large_answer(*sizes: int) -> ModelProto:
    """Spreads its input of one number over these sizes."""
    nodes = [helper.make_node("Expand", ["x", "shape"], ["y"])]
    return make_model(
        nodes, [value("x", [1])], [value("y", list(sizes))], (tensor("shape", np.array(sizes, np.int64)),)
    )
