"""File names that are not UTF-8: what tools cannot open is refused in one sentence, the rest works; JSON stays JSON."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support import models
from tests.support.command_line import Answer, CommandLine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has file names that are no text")

USAGE = 2
NO_TEXT = os.fsdecode(b"caf\xe9")


def refuse(answer: Answer, what: str) -> None:
    error = answer.expect(USAGE).document["error"]
    assert error["message"] == f"the path of {what} is not UTF-8: 'caf\\udce9'"
    assert error["hint"]
    assert "Traceback" not in answer.err


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.save(models.mlp(), tmp_path)


def test_a_model_is_refused_by_its_name_and_by_that_of_its_folder(bundler: CommandLine, tmp_path: Path) -> None:
    place = models.save(models.mlp(), tmp_path / "plain", name=NO_TEXT)
    refuse(bundler.run("inspect", place, "--json"), "the model")
    refuse(bundler.run("plan", place, "--target", "linux-x64", "--json"), "the model")
    inside = models.save(models.mlp(), tmp_path / NO_TEXT)
    refuse(bundler.run("build", inside, "--target", "linux-x64", "--output", tmp_path / "out", "--json"), "the model")


def test_an_output_a_cache_and_a_bundle_are_refused(bundler: CommandLine, tmp_path: Path, model: Path) -> None:
    build = ("build", model, "--target", "linux-x64", "--json")
    refuse(bundler.run(*build, "--output", tmp_path / NO_TEXT), "the output")
    refuse(bundler.run(*build, "--output", tmp_path / "out", "--cache", tmp_path / NO_TEXT), "the cache")
    refuse(bundler.run("verify", tmp_path / NO_TEXT, "--json"), "the bundle")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx"]


def test_samples_may_have_any_name(bundler: CommandLine, tmp_path: Path, model: Path, here: tuple[str, ...]) -> None:
    folder = tmp_path / NO_TEXT
    folder.mkdir()
    for number in range(2):
        np.savez(folder / f"{NO_TEXT}{number}.npz", x=np.full((1, 8), number, np.float32))
    options = (*here, "--no-prove", "--output", tmp_path / "out", "--samples", folder, "--json")
    answer = bundler.run("build", model, *options).expect(0)
    assert answer.document["bundles"][0]["target"] == "linux-x64"


def test_a_path_in_a_json_document_is_escaped(bundler: CommandLine, tmp_path: Path) -> None:
    """Whatever was found there."""
    answer = bundler.run("diff", tmp_path / NO_TEXT, tmp_path / "other", "--json")
    assert answer.code != 0
    assert "caf\\udce9" in answer.out
    assert answer.document["error"]["message"]


def test_a_name_in_utf8_is_read_in_any_locale(bundler: CommandLine, tmp_path: Path) -> None:
    """`PYTHONUTF8=0` and the locale C make Python read names as ASCII."""
    place = models.save(models.mlp(), tmp_path / "modèles", name="été.onnx")
    plain = dataclasses.replace(bundler, env={**bundler.env, "LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0"})
    answer = plain.run("plan", place, "--target", "linux-x64", "--json").expect(0)
    assert answer.document["plan"]["target"] == "linux-x64"
    refuse(plain.run("inspect", tmp_path / NO_TEXT, "--json"), "the model")
