"""A quantised model that the runtime's fusions change too much is optimised less, and bundler says so."""

from __future__ import annotations

from pathlib import Path

import pytest

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
