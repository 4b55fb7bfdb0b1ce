"""What a user gets from `bundler targets recommend`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import models
from tests.support.command_line import CommandLine


@pytest.fixture
def mlp(tmp_path: Path) -> Path:
    return models.save(models.mlp(), tmp_path / "in", "mlp.onnx")


def test_a_board_is_found_and_its_command_builds(bundler: CommandLine, mlp: Path) -> None:
    found = bundler.run("targets", "recommend", mlp, "--device", "Rasberry Pi 5", "--json").expect(0).document
    assert found["device"] == "Rasberry Pi 5"
    first = found["picks"][0]
    assert (first["target"], first["fits"]) == ("raspberry-pi-5", True)
    program, *arguments = first["command"]
    assert program == "bundler"
    bundler.run("plan", *arguments[1:]).expect(0)


def test_without_a_device_there_is_something_for_this_machine_and_for_browsers(bundler: CommandLine, mlp: Path) -> None:
    text = bundler.run("targets", "recommend", mlp).expect(0).out
    assert "For a browser:" in text
    assert "bundler build" in text
    assert str(mlp) in text


def test_an_unknown_device_ends_before_the_model_is_read(bundler: CommandLine, tmp_path: Path) -> None:
    answer = bundler.run("targets", "recommend", tmp_path / "missing.onnx", "--device", "toaster \x1b[31m9").expect(4)
    assert "no target is known for the device" in answer.err
    assert "\x1b[31m" not in answer.err
    assert "bundler targets list" in answer.err


def test_a_model_that_is_not_there(bundler: CommandLine, tmp_path: Path) -> None:
    answer = bundler.run("targets", "recommend", tmp_path / "missing.onnx", "--device", "raspberry pi 5")
    assert answer.code in (2, 3)
    assert "missing.onnx" in answer.err


def test_a_model_too_large_for_the_device_is_sent_elsewhere(bundler: CommandLine, tmp_path: Path) -> None:
    big = models.big_external(tmp_path, megabytes=600, layers=1)
    text = bundler.run("targets", "recommend", big, "--device", "raspberry pi 4").expect(0).out
    assert "does not fit: the model has" in text
    assert "linux-x64" in text
