"""Which branches ran is read from what the runtime did, also inside loops and other branches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from bundler.onnxkit import branches
from bundler.onnxkit.branches import Branch, has_branches, untaken_branches
from tests.support import models, open_models

X = np.ones((1, 3), np.float32)
YES, NO = np.array(True), np.array(False)


@pytest.fixture(autouse=True)
def _in_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.chdir(tmp_path / "scratch")


def test_a_branch_that_no_sample_takes_is_named(tmp_path: Path) -> None:
    model = models.save(models.if_model(), tmp_path)
    assert untaken_branches(model, [{"x": X, "positive": YES}]) == (Branch(node="y", side="else"),)
    assert untaken_branches(model, [{"x": X, "positive": NO}]) == (Branch(node="y", side="then"),)
    assert untaken_branches(model, [{"x": X, "positive": YES}, {"x": X, "positive": NO}]) == ()


def test_what_no_input_can_reach(tmp_path: Path) -> None:
    model = models.save(open_models.never_chosen(), tmp_path)
    assert untaken_branches(model, [{"x": X}, {"x": -X}]) == (Branch(node="choice", side="then"),)


def test_a_condition_inside_a_branch(tmp_path: Path) -> None:
    model = models.save(open_models.nested_choice(), tmp_path)
    samples = [{"x": X, "outer": YES}, {"x": X, "outer": NO}]
    assert untaken_branches(model, samples) == (Branch(node="inside", side="then"),)


def test_a_condition_inside_a_loop(tmp_path: Path) -> None:
    loop = models.loop_model()
    body = loop.graph.node[0].attribute[0].g
    choice = open_models.chosen([], []).graph.node[-1]
    choice.input[0], choice.output[0] = "again", "chosen"
    body.node.extend([choice, helper.make_node("Add", ["next", "chosen"], ["sum"])])
    body.output[1].name = "sum"
    assert untaken_branches(models.save(loop, tmp_path), [{"x": X}]) == (Branch(node="choice", side="else"),)


def test_weights_outside_the_file_are_found(tmp_path: Path) -> None:
    model = open_models.chosen_by_steps(50)
    model.graph.initializer.append(models.tensor("w", models.weights(1, 3)))
    model.graph.node.append(helper.make_node("Mul", ["x", "w"], ["extra"]))
    model.graph.output.append(models.value("extra", [1, 3]))
    path = models.save_external(model, tmp_path)
    steps = np.array(51, np.int64)
    assert untaken_branches(path, [{"x": X, "steps": steps}]) == (Branch(node="choice", side="else"),)


def test_names_of_the_marks_that_a_model_has_already(tmp_path: Path) -> None:
    model = models.if_model()
    model.graph.node[0].attribute[0].g.node[0].output[0] = "bundler_mark_0"
    model.graph.node[0].attribute[0].g.output[0].name = "bundler_mark_0"
    path = models.save(model, tmp_path)
    assert untaken_branches(path, [{"x": X, "positive": YES}]) == (Branch(node="y", side="else"),)


def test_a_hostile_name_is_safe_to_print(tmp_path: Path) -> None:
    model = models.if_model()
    model.graph.node[0].name = "\x1b[31m\n" + "x" * 300
    (found,) = untaken_branches(models.save(model, tmp_path), [{"x": X, "positive": YES}]) or ()
    assert found.node.isprintable()
    assert len(found.node) < 70


def test_a_model_too_large_to_open_twice_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = models.save(models.if_model(), tmp_path)
    monkeypatch.setattr(branches, "MAX_FOLLOWED_BYTES", 10)
    assert untaken_branches(model, [{"x": X, "positive": YES}]) is None


def test_a_profile_that_was_full_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = models.save(models.if_model(), tmp_path)
    monkeypatch.setattr(branches, "_FULL_PROFILE", 3)
    assert untaken_branches(model, [{"x": X, "positive": YES}]) is None


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    untaken_branches(models.save(models.if_model(), tmp_path), [{"x": X, "positive": YES}])
    assert not list((tmp_path / "scratch").iterdir())


def test_most_models_have_no_branches() -> None:
    assert has_branches(models.if_model())
    assert not has_branches(models.loop_model())
