"""Where a package of an environment stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundler.environments.packages import find_package
from bundler.environments.registry import Environment, host_environment
from bundler.model.errors import EnvironmentMissingError


@pytest.mark.parametrize("place", ["lib/python3.11/site-packages", "Lib/site-packages"])
def test_of_a_made_environment(tmp_path: Path, place: str) -> None:
    (tmp_path / place / "onnxruntime").mkdir(parents=True)
    made = Environment(name="x", python=tmp_path / "bin" / "python", versions={}, digest="0", python_version="3.11")
    assert find_package(made, "onnxruntime") == tmp_path / place / "onnxruntime"


def test_of_the_host() -> None:
    assert (find_package(host_environment(()), "onnxruntime") / "LICENSE").is_file()


def test_one_that_is_not_there_is_named() -> None:
    with pytest.raises(EnvironmentMissingError, match="the environment host has no package no_such_package") as error:
        find_package(host_environment(()), "no_such_package")
    assert error.value.hint == "clear the cache and build again"
