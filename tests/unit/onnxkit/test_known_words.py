"""Seeded texts are words that the model's tables list, each in the column that its table reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from bundler.model.free_dimensions import Sizes
from bundler.onnxkit.known_words import draw_words, known_words
from bundler.onnxkit.seeded_inputs import Maker, ValueHints
from bundler.onnxkit.signatures import model_signature
from tests.support import models

COLOURS = ["red", "green"]
TOWNS = ["Oslo", "Rome", "Lima"]


def encoder(*, zeros: int = 0, towns: list[Any] = TOWNS) -> onnx.ModelProto:
    """Two columns of texts, as scikit-learn encodes them; without `zeros`, an unknown category is an error."""
    tables = {"colour": COLOURS, "town": towns}
    nodes = [
        node
        for name, words in tables.items()
        for node in (
            helper.make_node("Gather", ["x", f"{name}_place"], [name], axis=1),
            helper.make_node(
                "OneHotEncoder", [name], [f"{name}_bits"], domain="ai.onnx.ml", cats_strings=words, zeros=zeros
            ),
        )
    ]
    nodes.append(helper.make_node("Concat", [f"{name}_bits" for name in tables], ["y"], axis=-1))
    places = [models.tensor(f"{name}_place", np.array([place], np.int64)) for place, name in enumerate(tables)]
    inputs = [models.value("x", [None, 2], TensorProto.STRING)]
    graph = helper.make_graph(nodes, "encoder", inputs, [models.value("y", [None, None, None])], places)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def test_each_column_has_the_words_of_its_table() -> None:
    assert known_words(encoder(), ("x",)) == {"x": {0: ("red", "green"), 1: ("Oslo", "Rome", "Lima")}}


def test_a_model_that_takes_no_other_words_runs_on_seeded_texts() -> None:
    model = encoder()
    hints = ValueHints(words=known_words(model, ("x",)))
    maker = Maker(signature=model_signature(model), sizes=Sizes(batch=16), hints=hints)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (answer,) = session.run(None, dict(maker.make(0, 0)))
    assert (answer.sum(axis=-1) == 2).all()
    assert answer.reshape(16, -1).any(axis=0).all()


def test_a_model_without_tables_has_none() -> None:
    assert known_words(models.identity(), ("x",)) == {}


def test_words_that_are_long_many_or_not_printable_are_left_out() -> None:
    towns = [b"\xff\x1b[31m", "x" * 500, *(f"town {place}" for place in range(1000))]
    found = known_words(encoder(towns=towns), ("x",))["x"][1]
    assert len(found) == 64
    assert (found[0], found[-1]) == ("town 0", "town 999")


def test_a_column_that_the_input_lacks_is_left_alone() -> None:
    texts = np.array([["a", "b"]], dtype=object)
    drawn = draw_words(texts, {1: ("c",), 7: ("d",), -9: ("e",)}, np.random.default_rng(0))
    assert drawn.tolist() == [["a", "c"]]
    assert draw_words(texts, {None: ("c",)}, np.random.default_rng(0)).tolist() == [["c", "c"]]
