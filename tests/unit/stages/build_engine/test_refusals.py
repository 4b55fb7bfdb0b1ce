"""What is known to be in vain is refused before the library is loaded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from bundler.model.errors import StageError
from tests.support import models
from tests.support.stage_calls import call_stage


def build(folder: Path, **options: Any) -> None:
    model = models.save(models.cnn(batch=1), folder / "model")
    call_stage("build_engine", folder / "out", {"model": model}, provider="Some", devices=("8.9",), **options)


def test_an_engine_for_another_system(tmp_path: Path) -> None:
    other = "linux" if sys.platform == "win32" else "windows"
    with pytest.raises(StageError, match=f"cannot build an engine for '{other}'") as caught:
        build(tmp_path, platform=other)
    assert "here = false" in str(caught.value.hint)


def test_half_precision_of_a_model_that_has_none(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="in half precision") as caught:
        build(tmp_path, half=True)
    assert "precision.method=fp16" in str(caught.value.hint)
