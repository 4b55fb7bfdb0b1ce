"""Weights that only branches read are copied into them, and the outputs stay the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, helper

from bundler.onnxkit.structure import captured_names, iterate_graphs, subgraphs
from bundler.stages.compile_context.captures import has_subgraphs, write_with_own_weights
from tests.support import models


def captures_weights(model: ModelProto) -> bool:
    names = {tensor.name for tensor in model.graph.initializer}
    inner = [graph for node in model.graph.node for graph in subgraphs(node)]
    return any(not names.isdisjoint(captured_names(graph)) for graph in inner)


def moved(source: Path) -> ModelProto:
    target = source.with_name("moved.onnx")
    write_with_own_weights(source, target)
    onnx.checker.check_model(str(target), full_check=True)
    return onnx.load(target, load_external_data=False)


def answers(path: Path, sign: float) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(str(path))
    return [np.asarray(value) for value in session.run(None, {"x": np.full((1, 3), sign, np.float32)})]


@pytest.mark.parametrize("save", [models.save, models.save_external])
def test_branches_have_the_weights_that_they_read(tmp_path: Path, save) -> None:
    source = save(models.choosing(), tmp_path)
    assert captures_weights(onnx.load(source, load_external_data=False))
    model = moved(source)
    assert not captures_weights(model)
    assert [tensor.name for tensor in model.graph.initializer] == ["first", "zero", "last"]
    for sign in (-1, 1):
        np.testing.assert_array_equal(answers(source, sign), answers(tmp_path / "moved.onnx", sign))


def test_a_weight_that_the_main_graph_reads_stays_there_too(tmp_path: Path) -> None:
    model = models.choosing()
    model.graph.node.append(helper.make_node("Add", ["y", "shift"], ["z"]))
    model.graph.output[0].name = "z"
    source = models.save(model, tmp_path)
    assert [tensor.name for tensor in moved(source).graph.initializer] == ["first", "zero", "shift", "last"]
    np.testing.assert_array_equal(answers(source, 1), answers(tmp_path / "moved.onnx", 1))


def test_a_branch_in_a_branch_reads_from_the_outer_one(tmp_path: Path) -> None:
    model = models.choosing()
    choice = model.graph.node[3]
    outer = helper.make_graph([choice], "outer", [], [models.value("chosen", [1, 3])])
    other = helper.make_graph(
        [helper.make_node("Identity", ["product"], ["same"])], "other", [], [models.value("same", [1, 3])]
    )
    around = helper.make_node("If", ["positive"], ["outermost"], then_branch=outer, else_branch=other)
    del model.graph.node[3]
    model.graph.node.insert(3, around)
    model.graph.node[4].input[0] = "outermost"
    source = models.save(model, tmp_path)
    result = moved(source)
    assert not captures_weights(result)
    for sign in (-1, 1):
        np.testing.assert_array_equal(answers(source, sign), answers(tmp_path / "moved.onnx", sign))


def test_only_models_with_subgraphs_are_rewritten() -> None:
    assert has_subgraphs(models.if_model())
    assert not has_subgraphs(models.cnn())


@pytest.mark.parametrize("constants", [False, True], ids=["weights", "constants"])
@pytest.mark.parametrize("save", [models.save, models.save_external])
def test_weights_of_branches_are_in_a_file(tmp_path: Path, save, constants) -> None:
    """ONNX Runtime cannot write those that it holds in memory, which are all of more than 127 bytes."""
    model = models.branch_weights()
    if constants:
        for branch in (graph for node in model.graph.node for graph in subgraphs(node)):
            nodes = [helper.make_node("Constant", [], [item.name], value=item) for item in branch.initializer]
            nodes += list(branch.node)
            del branch.node[:], branch.initializer[:]
            branch.node.extend(nodes)
    source = save(model, tmp_path)
    nested = [tensor for graph in list(iterate_graphs(moved(source)))[1:] for tensor in graph.initializer]
    assert len(nested) == 2
    assert {tensor.external_data[0].value for tensor in nested} == {"moved.onnx.subgraphs"}
    sessions = [onnxruntime.InferenceSession(str(path)) for path in (source, tmp_path / "moved.onnx")]
    for positive in (False, True):
        feeds = {"x": np.ones((1, 512), np.float32), "positive": np.array(positive)}
        one, two = (np.asarray(session.run(None, feeds)[0]) for session in sessions)
        np.testing.assert_array_equal(one, two)
