"""What a provider took and left, counted on the model before and the model after."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto, NodeProto, TensorProto, helper

from bundler.onnxkit.placement import explain_left, left_behind, summarize_left
from bundler.onnxkit.placement_facts import LeftNode
from tests.support import models


def node(operator: str, given: str, made: str, name: str = "", **attributes: Any) -> NodeProto:
    return helper.make_node(operator, [given], [made], name=name, **attributes)


def chain(*nodes: NodeProto, shape: list[Any] | None = None) -> ModelProto:
    ends = (models.value("x", shape or [1, 4]), models.value("y", shape or [1, 4]))
    return models.make_model(list(nodes), [ends[0]], [ends[1]])


def context(given: str, made: str) -> NodeProto:
    return helper.make_node("EPContext", [given], [made], domain="com.microsoft", name="compiled")


def test_nodes_left_are_found_by_name_output_or_operator() -> None:
    before = chain(
        node("Relu", "x", "a", "one"),
        node("Acosh", "a", "b", "two"),
        node("Tan", "b", "c"),
        node("Sin", "c", "d"),
        node("Sin", "d", "e"),
        node("Relu", "e", "y", "last"),
    )
    after = chain(
        context("x", "a2"),
        node("Transpose", "a2", "a3", "Transpose"),  # put in between by the runtime
        node("Acosh", "a3", "renamed", "two_token_7"),
        node("Tan", "renamed", "c"),
        node("Sin", "c", "elsewhere"),
        context("elsewhere", "y"),
    )
    assert left_behind(before, after) == [before.graph.node[index] for index in (1, 2, 3)]


def test_a_node_is_found_once_however_many_look_like_it() -> None:
    before = chain(node("Relu", "x", "y", "one"))
    after = chain(node("Relu", "x", "a", "one"), node("Relu", "a", "y", "one"))
    assert len(left_behind(before, after)) == 1


def test_reasons_as_far_as_they_can_be_reported() -> None:
    cast = helper.make_node("Cast", ["b"], ["c"], to=TensorProto.DOUBLE)
    model = chain(
        node("Relu", "x", "a"),
        node("Acosh", "a", "b"),
        cast,
        node("Relu", "c", "d"),
        node("NonZero", "d", "e"),
        node("Relu", "a", "f"),
        node("Identity", "f", "y"),
    )
    nodes = model.graph.node
    found = explain_left(model, [nodes[1], nodes[3], nodes[4], nodes[5]])
    assert [(item.name, item.operator) for item in found] == [
        ("b", "Acosh"),
        ("d", "Relu"),
        ("e", "NonZero"),
        ("f", "Relu"),
    ]
    assert [item.reason for item in found] == [
        "operator not supported",
        "type not supported: float64",
        "dynamic shape",
        "not with these attributes, ranks or neighbours",
    ]
    assert explain_left(model, []) == []


def test_a_condition_names_the_input_that_decides_it_and_its_branches_count() -> None:
    before = models.choosing()
    after = ModelProto()
    after.CopyFrom(before)
    del after.graph.node[4]
    after.graph.node.append(context("chosen", "y"))
    left = left_behind(before, after)
    assert [item.op_type for item in left] == ["MatMul", "ReduceSum", "Greater", "If"]
    assert sorted(item.op_type for item in left_behind(before, after, nested=True)[4:]) == ["Add", "Mul"]
    reason = explain_left(before, left)[3].reason
    assert reason == "its branch depends on the input 'x'; export the model without this choice"


def test_a_summary_counts_operators_with_their_reasons() -> None:
    left = [LeftNode(name=str(index), operator="Acosh", reason="operator not supported") for index in range(60)]
    assert summarize_left(left) == ("Acosh (60): operator not supported",)


def test_hostile_names_are_cut_and_broken_models_still_explained() -> None:
    long = chain(node("Acosh", "x", "y", "n" * 10_000))
    assert len(explain_left(long, list(long.graph.node))[0].name) <= 200
    broken = models.unknown_operator()
    assert explain_left(broken, list(broken.graph.node))[0].reason


def test_a_loop_is_not_left_for_its_sizes() -> None:
    """A loop over a sequence gives outputs of open sizes, also where those of the inputs are fixed."""
    loop = node("Loop", "y", "z", "repeat", body=helper.make_graph([], "body", [], []))
    model = chain(node("Relu", "x", "y"), loop)
    model.graph.value_info.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, ["steps"]))
    (found,) = explain_left(model, [model.graph.node[1]])
    assert found.reason == "operator not supported"
