"""Conditions that fixed sizes or constants decide are replaced by their branch, and the outputs stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

from bundler.model.fixing import Fixing
from bundler.onnxkit.decided_branches import inline_decided_branches
from bundler.onnxkit.fixed_models import fix_model
from bundler.onnxkit.structure import count_operators, iterate_graphs
from tests.support import models
from tests.support.recurrent_models import make_voice


def parse(text: str) -> ModelProto:
    """A model with `x` of the sizes [1, 4], and what the text says."""
    model: ModelProto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}')
    onnx.checker.check_model(model, full_check=True)
    return model


def inlined(model: ModelProto) -> ModelProto:
    """The model with its decided conditions replaced, which answers as before."""
    result = ModelProto()
    result.CopyFrom(model)
    count = inline_decided_branches(result)
    assert (count == 0) == (result == model)
    onnx.checker.check_model(result, full_check=True)
    for positive in (False, True):
        for one, two in zip(answer(model, positive=positive), answer(result, positive=positive), strict=True):
            np.testing.assert_array_equal(one, two)
    return result


def answer(model: ModelProto, *, positive: bool) -> list[Any]:
    options = onnxruntime.SessionOptions()
    # The runtime's own way to replace conditions confuses values of one name.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {"x": np.arange(4, dtype=np.float32)[None], "positive": np.array(positive)}
    return session.run(None, {port.name: feeds[port.name] for port in session.get_inputs()})


DECIDED = """
    decided (float[1, 4] x) => (float[1, 4] y) <int64 axis = {1}, int64 four = {4}> {
        shape = Shape (x)
        size = Gather (shape, axis)
        fits = Equal (size, four)
        twice = Add (x, x)
        y = If (fits) <
            then_branch = good () => (chosen) { half = Add (twice, x)  chosen = Neg (half) },
            else_branch = bad () => (kept) { kept = Identity (x) }
        >
    }
"""


def test_a_condition_on_a_fixed_size_becomes_its_branch() -> None:
    result = inlined(parse(DECIDED))
    assert "If" not in count_operators(result)
    assert [node.op_type for node in result.graph.node][-2:] == ["Add", "Neg"]
    assert result.graph.node[-1].output == ["y"]


def test_fixing_a_size_decides() -> None:
    model = parse(DECIDED.replace("float[1, 4] x", "float[1, n] x").replace("float[1, 4] y", "float[1, m] y"))
    open_sizes = ModelProto()
    open_sizes.CopyFrom(model)
    assert inline_decided_branches(open_sizes) == 0
    for size, kept in ((4, "Neg"), (5, "Identity")):
        fixed = ModelProto()
        fixed.CopyFrom(model)
        fix_model(fixed, Fixing(dimensions={"n": size}, shapes={}))
        assert fixed.graph.node[-1].op_type == kept


@pytest.mark.parametrize("make", [models.if_model, models.choosing, models.branch_weights, models.loop_model])
def test_a_condition_on_an_input_is_left_alone(make: Any) -> None:
    model = make()
    before = model.SerializeToString()
    assert inline_decided_branches(model) == 0
    assert model.SerializeToString() == before


def test_an_overridable_default_decides_nothing() -> None:
    """An initializer that is an input as well is what the application gives."""
    model = models.if_model()
    model.graph.initializer.append(numpy_helper.from_array(np.array(True), "positive"))
    assert inline_decided_branches(model) == 0


def test_a_decided_condition_in_a_branch_is_replaced_there() -> None:
    result = inlined(
        parse("""
            nested (float[1, 4] x, bool positive) => (float[1, 4] y) <int64 two = {2}> {
                y = If (positive) <
                    then_branch = outer () => (float[1, 4] given) {
                        shape = Shape (x)
                        rank = Size (shape)
                        flat = Equal (rank, two)
                        given = If (flat) <
                            then_branch = inner () => (found) { found = Neg (x) },
                            else_branch = never () => (not_found) { not_found = Squeeze (x) }
                        >
                    },
                    else_branch = other () => (float[1, 4] same) { same = Identity (x) }
                >
            }
        """)
    )
    assert count_operators(result) == {"Equal": 1, "Identity": 1, "If": 1, "Neg": 1, "Shape": 1, "Size": 1}


def test_a_branch_that_cannot_run_at_these_sizes_stays() -> None:
    """With its condition replaced it would be invalid, and no runtime would open the model for the other branch."""
    model = make_voice()
    fix_model(model, Fixing(dimensions={"samples": 4}, shapes={}))
    high, low = (len(list(_conditions(branch))) for branch in _branches(model))
    assert (high, low) == (1, 0)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), disabled_optimizers=["ConstantFolding"], providers=["CPUExecutionProvider"]
    )
    feeds = {"x": np.ones((1, 4), np.float32), "rate": np.array(8000), "h0": np.zeros((1, 1, 2), np.float32)}
    assert np.isfinite(session.run(["score"], feeds)[0]).all()


def _branches(model: ModelProto) -> list[Any]:
    (choice,) = _conditions(model.graph)
    branches = {item.name: item.g for item in choice.attribute}
    return [branches["then_branch"], branches["else_branch"]]


def _conditions(graph: Any) -> list[Any]:
    return [node for node in graph.node if node.op_type == "If"]


def test_outputs_that_are_outer_values_weights_or_given_twice() -> None:
    taken = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["negated"])],
        "taken",
        [],
        [models.value(name, [1, 4]) for name in ("x", "weight", "negated", "negated")],
        [models.tensor("weight", models.weights(1, 4))],
    )
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], [f"o{index}"]) for index in range(4)],
        "other",
        [],
        [models.value(f"o{index}", [1, 4]) for index in range(4)],
    )
    names = ["y0", "y1", "y2", "y3"]
    model = models.make_model(
        [helper.make_node("If", ["sure"], names, then_branch=taken, else_branch=other)],
        [models.value("x", [1, 4])],
        [models.value(name, [1, 4]) for name in names],
        [numpy_helper.from_array(np.array(True), "sure")],
    )
    result = ModelProto()
    result.CopyFrom(model)
    assert inline_decided_branches(result) == 1
    found = dict(zip(names, answer(result, positive=True), strict=True))
    x = np.arange(4, dtype=np.float32)[None]
    np.testing.assert_array_equal(found["y0"], x)
    np.testing.assert_array_equal(found["y1"], models.weights(1, 4))
    for name in ("y2", "y3"):
        np.testing.assert_array_equal(found[name], -x)


@pytest.mark.parametrize(
    "then",
    [
        "y = Neg (x)  u = Abs (y)  v = Abs (u)",
        """
        v = Neg (x)
        u = If (positive) <
            then_branch = inner () => (float[1, 4] w) { y = Abs (x)  w = Sub (y, v) },
            else_branch = other () => (float[1, 4] s) { s = Identity (v) }
        >
        """,
    ],
)
def test_a_branch_may_use_the_names_of_the_outputs_for_other_values(then: str) -> None:
    """Nothing hides them: the outputs of a condition exist only after it."""
    for outputs in ("u, v", "v, u"):
        first, second = (f"float[1, 4] {name}" for name in outputs.split(", "))
        result = inlined(
            parse(f"""
                named (float[1, 4] x, bool positive) => (float[1, 4] y, float[1, 4] z) <bool sure = {{1}}> {{
                    y, z = If (sure) <
                        then_branch = good () => ({first}, {second}) {{ {then} }},
                        else_branch = bad () => (float[1, 4] o, float[1, 4] p) {{ o = Exp (x)  p = Identity (x) }}
                    >
                }}
            """)
        )
        assert {node.input[0] for node in _conditions(result.graph)} <= {"positive"}


def test_sizes_that_would_fill_the_memory_together_decide_nothing() -> None:
    """Five short lists along different axes become a tensor that no machine has memory for."""
    names = [f"list{axis}" for axis in range(5)]
    model = models.make_model(
        [
            helper.make_node("Max", names, ["huge"]),
            helper.make_node("ReduceProd", ["huge"], ["product"], keepdims=0),
            helper.make_node("Cast", ["product"], ["sure"], to=TensorProto.BOOL),
            helper.make_node(
                "If", ["sure"], ["y"], then_branch=branch((), "x", "Add", 1), else_branch=branch((), "x", "Mul", 1)
            ),
        ],
        [models.value("x", [1, 4])],
        [models.value("y", [1, 4])],
        [
            numpy_helper.from_array(np.ones([512 if axis == place else 1 for axis in range(5)], np.int64), name)
            for place, name in enumerate(names)
        ],
    )
    assert inline_decided_branches(model) == 0


Row = tuple[tuple[str, Any, Any], ...]
"""Conditions one after another: each with the input that decides it, and the rows in its two branches."""

ROWS: st.SearchStrategy[Row] = st.recursive(
    st.just(()),
    lambda inner: st.lists(st.tuples(st.sampled_from(["yes", "no", "positive"]), inner, inner), max_size=3).map(tuple),
    max_leaves=12,
)


def chain(row: Row, start: str, depth: int) -> tuple[list[onnx.NodeProto], str]:
    """The nodes of a row, and the value that the last one gives. Branches of one depth use the same names."""
    nodes = []
    for position, (condition, then, other) in enumerate(row):
        given_name = f"given{depth}.{position}"
        graphs = branch(then, start, "Add", depth + 1), branch(other, start, "Mul", depth + 1)
        nodes.append(helper.make_node("If", [condition], [given_name], then_branch=graphs[0], else_branch=graphs[1]))
        start = given_name
    return nodes, start


def branch(row: Row, start: str, operator: str, depth: int) -> onnx.GraphProto:
    weight = models.tensor(f"weight{depth}", np.full((1, 4), depth + 2, np.float32))
    nodes, last = chain(row, f"made{depth}", depth)
    nodes.insert(0, helper.make_node(operator, [start, weight.name], [f"made{depth}"]))
    nodes.append(helper.make_node("Neg", [last], [f"out{depth}"]))
    return helper.make_graph(nodes, operator, [], [models.value(f"out{depth}", [1, 4])], [weight])


@settings(max_examples=40, deadline=None)
@given(row=ROWS)
def test_any_nesting_of_decided_and_open_conditions_answers_as_before(row: Row) -> None:
    nodes, last = chain(row, "x", 0)
    model = models.make_model(
        [*nodes, helper.make_node("Relu", [last], ["y"])],
        [models.value("x", [1, 4]), models.value("positive", [], TensorProto.BOOL)],
        [models.value("y", [1, 4])],
        [numpy_helper.from_array(np.array(value), name) for name, value in (("yes", True), ("no", False))],
    )
    result = inlined(model)
    assert {node.input[0] for graph in iterate_graphs(result) for node in _conditions(graph)} <= {"positive"}
