"""ORT format: the same outputs, the same bytes every time, and a note for models that cannot be converted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bundler.stages.convert_ort import run as convert_run
from tests.support import models
from tests.support.stage_calls import call_stage, compare, record
from tests.unit.stages.test_bad_models import make_tree

KINDS = [models.cnn, models.scaler_pipeline, models.if_model, models.strings, models.sequence_output, models.zipmap]


@pytest.mark.parametrize("make", KINDS)
def test_outputs_stay_equal(tmp_path: Path, make) -> None:
    model = models.save(make(), tmp_path)
    golden = record(model, tmp_path / "golden")
    result = call_stage("convert_ort", tmp_path / "out", {"model": model})
    assert result.facts == {"format": "ort", "bytes": (tmp_path / "out" / "model.ort").stat().st_size}
    assert result.notes == ()
    assert compare(tmp_path / "out" / "model.ort", golden, tmp_path / "compare").equal


def test_every_process_writes_the_same_bytes(tmp_path: Path) -> None:
    model = models.save(models.scaler_pipeline(), tmp_path)
    code = (
        "import os, sys; os.environ['ORT_DISABLE_TELEMETRY'] = '1'\n"
        "from pathlib import Path\n"
        "from bundler.model.stage import StageRequest\n"
        "from bundler.stages.convert_ort.run import run\n"
        "request = StageRequest(inputs={'model': Path(sys.argv[1])}, options={}, output=Path(sys.argv[2]))\n"
        "run(request, lambda share, text: None)\n"
    )
    written = set()
    for name in ("one", "two", "three"):
        folder = tmp_path / name
        folder.mkdir()
        subprocess.run([sys.executable, "-c", code, str(model), str(folder)], check=True)
        written.add((folder / "model.ort").read_bytes())
        assert [path.name for path in folder.iterdir()] == ["model.ort"]
    assert len(written) == 1


def test_a_file_that_is_much_larger_than_the_onnx_file_is_said(tmp_path: Path) -> None:
    """The lists of a forest's numbers take twice the room."""
    model = models.save(make_tree(17), tmp_path)
    result = call_stage("convert_ort", tmp_path / "out", {"model": model})
    assert result.facts["bytes"] > 1.5 * model.stat().st_size
    (note,) = result.notes
    assert note.text.startswith("the model takes ")
    assert note.text.endswith("--set optimization.format=onnx is smaller")


def test_a_model_that_is_too_large_stays_onnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert_run, "LIMIT", 1000)
    model = models.save_external(models.cnn(), tmp_path / "model")
    result = call_stage("convert_ort", tmp_path / "out", {"model": model})
    assert result.entry is None
    assert list((tmp_path / "out").iterdir()) == []
    assert "at most 2 GB" in result.notes[0].text


def test_a_model_that_the_format_does_not_support_stays_onnx(tmp_path: Path) -> None:
    model = models.save(models.unknown_domain(), tmp_path)
    result = call_stage("convert_ort", tmp_path / "out", {"model": model})
    assert result.entry is None
    assert result.notes[0].level == "warning"
    assert "Sparkle" in result.notes[0].text
