"""The loader of Python bundles finds what the conformance vectors say, and claims nothing of what was not judged."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bundler.support.data import data_root
from tests.vectors.write import find_differences, read_cases

CASES = read_cases()
WHY = "it differs from run to run"


@pytest.fixture
def loader(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    monkeypatch.syspath_prepend(str(data_root("templates") / "python" / "package"))
    yield {name: importlib.import_module(f"_loader.{name}") for name in ("integrity", "metrics", "proving")}
    for module in [module for module in sys.modules if module.startswith("_loader")]:
        del sys.modules[module]


@pytest.mark.parametrize("equal", [True, False])
def test_an_output_that_could_not_be_judged_has_no_figures(
    loader: dict[str, ModuleType], capsys: pytest.CaptureFixture[str], *, equal: bool
) -> None:
    figures = loader["metrics"].OutputFigures("y")
    values = np.ones((2, 2), np.float32)
    figures.add(values if equal else values + 1, values, {}, "sample 'a'")
    reported = figures.to_json(judged=False)
    assert {value for name, value in reported.items() if name != "name"} == {None}
    assert reported.keys() == figures.to_json().keys()
    outcome = {"variant": "cpu", "status": "passed", "reason": "", "outputs": [reported], "unjudged": {"y": WHY}}
    loader["proving"].print_outcomes([outcome])
    assert capsys.readouterr().out == f"cpu: passed\n  'y': could not be judged: {WHY}\n"


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_it_finds_the_expected_figures(loader: dict[str, ModuleType], case: dict[str, Any]) -> None:
    for gate in case["gates"]:
        figures = loader["metrics"].OutputFigures("y", loader["metrics"].Reference(case["reference"]))
        for sample in case["samples"]:
            figures.add(sample["actual"], sample["reference"], gate["tolerance"], "sample 'a'")
        assert (figures.mismatch is not None) == case["mismatch"]
        assert case["mismatch"] or find_differences(figures.to_json(), case["figures"]) == {}
        assert (figures.find_fault(gate["tolerance"]) is None) == gate["within"], gate["name"]


@pytest.mark.parametrize("size", [0, 1, 2 * 65_536, 2 * 65_536 + 1])
def test_a_file_is_hashed_part_by_part(
    loader: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: int
) -> None:
    """So that a model of many gigabytes is not mapped as a whole while the runtime loads it."""
    integrity = loader["integrity"]
    monkeypatch.setattr(integrity, "_WINDOW", 65_536)
    content = np.random.default_rng(0).bytes(size)
    (tmp_path / "weights").write_bytes(content)
    assert integrity.hash_file(str(tmp_path / "weights")) == hashlib.sha256(content).hexdigest()


def test_of_two_runs_of_it_none_is_the_worse(loader: dict[str, ModuleType]) -> None:
    reported = loader["metrics"].OutputFigures("y").to_json(judged=False)
    assert loader["metrics"].take_worse(reported, reported) == reported


def test_a_file_that_does_not_exist_is_said_not_to(loader: dict[str, ModuleType]) -> None:
    arrays = importlib.import_module("_loader.arrays")
    with pytest.raises(Exception, match=r"there is no file /nonexistent\.npz") as caught:
        arrays.read_inputs(["/nonexistent.npz"], [])
    assert "give a file from numpy.savez" in str(caught.value)
    assert loader
