"""What a golden set without samples becomes in a build: sizes that run, and refusals that help."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto

from tests.support import models, open_models
from tests.support.command_line import CommandLine
from tests.support.documents import read_document

ASKED = ("--target", "linux-x64", "--no-prove", "--set", 'python.versions=["3.11"]')


def build(warm: CommandLine, model: ModelProto, folder: Path) -> tuple[str, dict[str, Any]]:
    """What the screen says, and the configuration that the bundle's loader obeys."""
    path = models.save(model, folder / "in", "tiny.onnx")
    answer = warm.run("build", path, *ASKED, "--output", folder / "out").expect(0)
    (config,) = (folder / "out").rglob("runtime.json")
    return answer.err, read_document(config)


@pytest.mark.quick
def test_a_model_of_one_batch_is_published_with_it(warm: CommandLine, tmp_path: Path) -> None:
    said, config = build(warm, open_models.only_batch(1), tmp_path)
    assert "warning: the model runs only at batch=1 (rejected: batch: 2, 3, 4)" in said
    assert config["signature"]["inputs"][0]["type"]["shape"] == [1, 4]
    assert config["signature"]["outputs"][0]["type"]["shape"] == [1, 4]


def test_axes_without_names_that_take_one_size(warm: CommandLine, tmp_path: Path) -> None:
    said, config = build(warm, open_models.only_square(32), tmp_path)
    assert "the model runs only at image[2]=32, image[3]=32" in said
    assert config["signature"]["inputs"][0]["type"]["shape"] == [None, 3, 32, 32]


def test_a_recurrent_audio_model_without_samples(warm: CommandLine, tmp_path: Path) -> None:
    _, config = build(warm, open_models.recurrent_audio(), tmp_path)
    assert config["signature"]["inputs"][0]["type"]["shape"] == [None, None]
    (index,) = (tmp_path / "out").rglob("golden/index.json")
    samples = json.loads(index.read_text(encoding="utf-8"))["samples"]
    assert {tuple(sample["inputs"]["samples"]["shape"]) for sample in samples} == {(1, 512), (2, 1024)}


@pytest.mark.parametrize("side", [320])
def test_a_model_that_takes_no_batch_is_refused_with_what_was_tried(
    warm: CommandLine, tmp_path: Path, side: int
) -> None:
    path = models.save(open_models.impossible_batch(side), tmp_path, "wide.onnx")
    said = warm.run("build", path, *ASKED, "--output", tmp_path / "out").expect(3).err
    assert "the model did not run on any seeded input" in said
    assert "batch=16000: not tried: the inputs would have 18.3 GiB, more than 64 MiB" in said
    assert "hint: give real inputs with --samples, or sizes with --dim NAME=SIZE" in said
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
