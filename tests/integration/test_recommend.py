"""What a user gets from `bundler targets recommend`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import models
from tests.support.command_line import CommandLine


@pytest.fixture
def mlp(tmp_path: Path) -> Path:
    return models.save(models.mlp(), tmp_path / "in", "mlp.onnx")


@pytest.mark.quick
def test_a_board_is_found_and_its_command_builds(warm: CommandLine, mlp: Path) -> None:
    found = warm.run("targets", "recommend", mlp, "--device", "Rasberry Pi 5", "--json").expect(0).document
    assert found["device"] == "Rasberry Pi 5"
    first = found["picks"][0]
    assert (first["target"], first["fits"]) == ("raspberry-pi-5", True)
    program, *arguments = first["command"]
    assert program == "bundler"
    warm.run("plan", *arguments[1:]).expect(0)


def test_without_a_device_there_is_something_for_this_machine_and_for_browsers(warm: CommandLine, mlp: Path) -> None:
    text = warm.run("targets", "recommend", mlp).expect(0).out
    assert "For a browser:" in text
    assert "bundler build" in text
    assert str(mlp) in text


@pytest.mark.parametrize(
    ("device", "target"),
    [
        ("Snapdragon 8 Elite Gen 6", "android-arm64"),
        ("Snapdragon 9 Gen 9", "android-arm64"),
        ("Jetson Rubin", "linux-arm64"),
        ("RTX 6090", "linux-x64"),
    ],
)
def test_a_device_of_the_next_generation_is_said_to_be_unknown(
    warm: CommandLine, mlp: Path, device: str, target: str
) -> None:
    found = warm.run("targets", "recommend", mlp, "--device", device, "--json").expect(0).document
    first = found["picks"][0]
    assert (first["target"], first["known"]) == (target, False)
    assert "not in the catalogue; the nearest usable target" in first["matched"]
    text = warm.run("targets", "recommend", mlp, "--device", device).expect(0).out
    assert "not in the catalogue" in " ".join(text.split())


def test_a_phone_with_one_chip_or_another_comes_with_both_targets_and_a_caution(warm: CommandLine, mlp: Path) -> None:
    found = warm.run("targets", "recommend", mlp, "--device", "Galaxy S22", "--json").expect(0).document
    assert [pick["target"] for pick in found["picks"][:2]] == ["snapdragon-8g1", "samsung-exynos"]
    assert all("two chips by region" in pick["matched"] for pick in found["picks"][:2])
    assert found["picks"][0]["known"]


def test_an_unknown_device_ends_before_the_model_is_read(warm: CommandLine, tmp_path: Path) -> None:
    answer = warm.run("targets", "recommend", tmp_path / "missing.onnx", "--device", "toaster \x1b[31m9").expect(2)
    assert "no target is known for the device" in answer.err
    assert "\x1b[31m" not in answer.err
    assert "bundler targets list" in answer.err


def test_a_model_that_is_not_there(warm: CommandLine, tmp_path: Path) -> None:
    answer = warm.run("targets", "recommend", tmp_path / "missing.onnx", "--device", "raspberry pi 5")
    assert answer.code in (2, 3)
    assert "missing.onnx" in answer.err


def test_a_model_too_large_for_the_device_is_sent_elsewhere(warm: CommandLine, tmp_path: Path) -> None:
    big = models.big_external(tmp_path, megabytes=600, layers=1)
    text = warm.run("targets", "recommend", big, "--device", "raspberry pi 4").expect(0).out
    assert "incompatible: the model has" in text
    assert "linux-x64" in text
