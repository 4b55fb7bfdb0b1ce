"""Seeded values of a table's columns lie on both sides of every threshold of the trees that read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from bundler.model.free_dimensions import Sizes
from bundler.onnxkit.seeded_inputs import Maker, ValueHints
from bundler.onnxkit.signatures import model_signature
from bundler.onnxkit.tree_thresholds import draw_around, tree_thresholds
from tests.support import models

TREE: dict[str, Any] = {
    "nodes_treeids": [0, 0, 0, 0, 0],
    "nodes_nodeids": [0, 1, 2, 3, 4],
    "nodes_featureids": [2, 0, 0, 0, 0],
    "nodes_values": [115.5, -40.0, 0.0, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 3, 0, 0, 0],
    "nodes_falsenodeids": [2, 4, 0, 0, 0],
    "class_treeids": [0, 0, 0],
    "class_nodeids": [2, 3, 4],
    "class_ids": [0, 0, 0],
    "class_weights": [1.0, 0.0, 1.0],
    "classlabels_int64s": [0, 1],
}
"""The first column counts at -40 where the third is at most 115.5."""


def tree(*, before: str = "Identity", **changed: Any) -> onnx.ModelProto:
    given = {name: value for name, value in {**TREE, **changed}.items() if value is not None}
    nodes = [
        helper.make_node(before, ["x"], ["table"]),
        helper.make_node("TreeEnsembleClassifier", ["table"], ["label", "scores"], domain="ai.onnx.ml", **given),
    ]
    outputs = [models.value("label", [None], TensorProto.INT64), models.value("scores", [None, 2])]
    graph = helper.make_graph(nodes, "tree", [models.value("x", ["rows", 3])], outputs)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def test_leaves_have_no_threshold() -> None:
    assert tree_thresholds(tree(), ("x",)) == {"x": {2: (115.5,), 0: (-40.0,)}}


def test_a_column_that_was_changed_has_none() -> None:
    assert tree_thresholds(tree(before="Neg"), ("x",)) == {}


def test_every_leaf_is_reached() -> None:
    model = tree()
    maker = Maker(
        signature=model_signature(model), sizes=Sizes(), hints=ValueHints(thresholds=tree_thresholds(model, ("x",)))
    )
    session = onnxruntime.InferenceSession(model.SerializeToString())
    labels = [session.run(["label"], maker.make(0, index))[0].tolist() for index in range(8)]
    assert {label for found in labels for label in found} == {0, 1}


def test_other_columns_keep_their_values() -> None:
    values = np.full((4, 3), 7.0)
    drawn = draw_around(values, {0: (1.0, 3.0), 9: (1.0,)}, np.random.default_rng(0))
    assert (drawn[:, 1:] == 7).all()
    assert ((drawn[:, 0] >= -1) & (drawn[:, 0] <= 5)).all()


@pytest.mark.parametrize(
    "changed",
    [
        {"nodes_values": None},
        {"nodes_featureids": None},
        {"nodes_values": [float("nan"), float("inf")]},
        {"nodes_values": "text"},
        {"nodes_featureids": 7},
        {"nodes_featureids": [-1, -(1 << 62)]},
    ],
)
def test_a_malformed_tree_has_none(changed: dict[str, Any]) -> None:
    assert tree_thresholds(tree(**changed), ("x",)) == {}


def test_the_largest_thresholds_stay_finite() -> None:
    drawn = draw_around(np.zeros((64, 1)), {0: (-3.4e38, 3.4e38)}, np.random.default_rng(0))
    assert np.isfinite(drawn.astype(np.float32)).all()
