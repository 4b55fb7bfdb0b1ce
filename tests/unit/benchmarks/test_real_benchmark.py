"""The table of real models says what builds answered, and no more."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import pytest

from tests.unit.benchmarks.test_benchmarks import load


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load("subjects.real", monkeypatch)


def test_every_model_is_locked_and_has_a_name_of_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    models = load("real_models", monkeypatch).list_models()
    assert len(models) >= 25
    assert len({model.name for model in models}) == len(models)
    assert all(re.fullmatch("[0-9a-f]{64}", model.package.sha256) for model in models)
    assert {model.package.registry for model in models} == {"PyPI", "npm"}


@pytest.mark.parametrize(
    ("answer", "cell"),
    [
        ({"levels": {"cpu": "executed"}, "size": 2_000_000, "worst": 34.4}, "executed: cpu; 1.5 s, 2.0 MB, 34 dB"),
        ({"levels": {"cpu": "executed"}, "equal": True}, "executed: cpu; 1.5 s, 0.0 MB, equal"),
        ({"levels": {"a": "resolved", "b": "stand-in"}}, "resolved: a; stand-in: b; 1.5 s, 0.0 MB, no figure"),
        ({"code": 3, "message": "why"}, "**refused** (exit 3), 1.5 s"),
        (None, "not built in time"),
    ],
)
def test_a_cell_has_the_levels_that_the_build_answered(
    answer: dict[str, Any] | None, cell: str, real: ModuleType
) -> None:
    assert real._show(answer and real.Outcome(seconds=1.5, **answer)) == cell


def test_models_are_counted_by_the_highest_level_of_a_variant(real: ModuleType) -> None:
    """A module for Android resolves what only a phone can run, and its CPU variant is run in the phone's place."""
    phone = real.Outcome(seconds=1.0, levels={"nnapi": "resolved", "cpu": "stand-in"})
    refused = real.Outcome(seconds=1.0, code=3, message="why")
    table = real._count([(None, {"Android": phone, "Python": refused})])
    assert table.columns == ("ecosystem", "stand-in", "refused", "not built in time")
    assert {row[0]: row[1:] for row in table.rows} == {
        "Python": ("0", "1", "0"),
        "Android": ("1", "0", "0"),
        **dict.fromkeys(("web", "Java", "files"), ("0", "0", "1")),
    }
