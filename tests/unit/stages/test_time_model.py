"""What the choice between models stands on. No test here asks for a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundler.model.errors import StageError
from tests.support import models
from tests.support.stage_calls import call_stage, record


def test_two_models_are_timed_in_turns(tmp_path: Path) -> None:
    model = models.save(models.mlp(), tmp_path)
    golden = record(model, tmp_path / "golden")
    found = call_stage(
        "time_model", tmp_path / "out", {"model": model, "baseline": model, "golden": golden}, seconds=0.2
    )
    figures = {"seconds", "baseline_seconds", "ratio", "low", "high", "processor_ratio", "rounds"}
    assert set(found.facts) == figures
    assert found.facts["rounds"] >= 7
    assert found.facts["processor_ratio"] > 0
    assert found.facts["low"] <= found.facts["ratio"] <= found.facts["high"]
    assert found.facts["seconds"] > 0


def test_a_model_that_does_not_run_on_the_samples_is_an_error(tmp_path: Path) -> None:
    model = models.save(models.mlp(), tmp_path / "one")
    other = models.save(models.cnn(), tmp_path / "other")
    golden = record(model, tmp_path / "golden")
    with pytest.raises(StageError, match="does not run on the golden samples"):
        call_stage("time_model", tmp_path / "out", {"model": other, "baseline": model, "golden": golden}, seconds=0.1)
