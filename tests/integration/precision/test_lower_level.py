"""A model that the runtime's fusions change too much is optimised less, and bundler says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.support import models
from tests.support.command_line import ONE_PYTHON, Answer, CommandLine
from tests.support.documents import read_document
from tests.support.rounding import quantized_chain

STRICT = "accuracy.sqnr_db=100"
WHY = "at level extended, the runtime fuses operators and rounds in other places, and the gate fails"


@pytest.fixture
def here(tmp_path: Path) -> CommandLine:
    models.save(quantized_chain(), tmp_path)
    return CommandLine(cache=tmp_path / "cache", cwd=tmp_path)


def build(here: CommandLine, target: str, *overrides: str) -> Answer:
    given = [word for override in overrides for word in ("--set", override)]
    return here.run("build", "model.onnx", "--target", target, "--no-prove", "-o", "out", *given)


def gelu() -> ModelProto:
    """A floating-point model: fused to one operator, the last bits of its outputs are others."""
    numbers = [("root2", 1.41421354), ("one", 1), ("half", 0.5)]
    nodes = [
        helper.make_node("Div", ["x", "root2"], ["scaled"]),
        helper.make_node("Erf", ["scaled"], ["error"]),
        helper.make_node("Add", ["error", "one"], ["weight"]),
        helper.make_node("Mul", ["x", "weight"], ["product"]),
        helper.make_node("Mul", ["product", "half"], ["y"]),
    ]
    constants = tuple(models.tensor(name, np.array(number, np.float32)) for name, number in numbers)
    return models.make_model(nodes, [models.value("x", ["n", 64])], [models.value("y", ["n", 64])], constants)


def test_a_floating_point_model_too(here: CommandLine, tmp_path: Path) -> None:
    models.save(gelu(), tmp_path)
    exact = ("accuracy.absolute=0", "accuracy.relative=0")
    assert f"warning: optimised at level basic: {WHY}" in build(here, "linux-x64", ONE_PYTHON, *exact).expect(0).err


def test_the_lower_level_is_taken_and_said(here: CommandLine, tmp_path: Path) -> None:
    assert (
        f"warning: optimised at level basic: {WHY} (output 'y': "
        in build(here, "linux-x64", ONE_PYTHON, STRICT).expect(0).err
    )
    manifest = read_document(tmp_path / "out" / "model-linux-x64" / "bundle.json")
    decisions = [entry for entry in manifest["decisions"] if entry["subject"].endswith("level")]
    assert [(entry["choice"], entry["reason"]) for entry in decisions] == [("basic", WHY)]


def test_a_level_that_was_set_is_kept_and_the_hint_works(here: CommandLine) -> None:
    refused = build(here, "linux-x64", ONE_PYTHON, STRICT, "optimization.level=extended").expect(7).err
    assert "--set optimization.level=basic" in refused
    build(here, "linux-x64", ONE_PYTHON, STRICT, "optimization.level=basic").expect(0)
