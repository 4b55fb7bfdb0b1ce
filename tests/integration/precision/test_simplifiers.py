"""Each simplifier runs in its locked environment, and what it makes answers as the model did."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime
import pytest

from bundler.environments.registry import Environments
from bundler.stages.simplify.spec import TOOLS
from tests.support import models
from tests.support.bundles import cache_root
from tests.support.environment_stages import StageRunner
from tests.support.real_models import fetch_example
from tests.support.stage_calls import compare, record
from tests.support.text_images import write_line_samples

pytestmark = pytest.mark.slow

EXACT = ("onnxscript",)
"""The default, which never fuses arithmetic: what it makes is bit-identical."""


@pytest.fixture
def run(shared: Path, tmp_path: Path) -> StageRunner:
    return StageRunner(Environments(cache_root(shared / "cache")), tmp_path / "runs")


@pytest.fixture(scope="session")
def orientation(shared: Path) -> Path:
    return fetch_example("text_orientation", shared / "text_orientation" / "orientation.onnx")


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("make", [models.redundant, models.cnn, models.mlp, models.if_model])
def test_what_comes_out_answers_as_what_went_in(tmp_path: Path, run: StageRunner, tool: str, make) -> None:
    model = models.save(make(), tmp_path / "model")
    golden = record(model, tmp_path / "golden")
    outcome = run("simplify", tool, {"model": model}, tool=tool)
    assert outcome.facts["tool"] == tool
    result = compare(outcome.path, golden, tmp_path / "compare")
    assert result.equal or all(output.max_absolute < 1e-5 for output in result.outputs)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_trained_network_loses_more_than_half_of_its_nodes(
    tmp_path: Path, run: StageRunner, orientation: Path, tool: str
) -> None:
    golden = record(orientation, tmp_path / "golden", write_line_samples(tmp_path / "lines", 2))
    outcome = run("simplify", tool, {"model": orientation}, tool=tool)
    result = compare(outcome.path, golden, tmp_path / "compare")
    assert result.equal is (tool in EXACT)
    assert all(output.max_absolute < 1e-5 for output in result.outputs)
    if tool != "onnxoptimizer":  # it folds no constants
        assert outcome.facts["nodes_after"] < outcome.facts["nodes_before"] / 2


@pytest.mark.parametrize("tool", TOOLS)
def test_weights_in_a_file_of_their_own_stay_in_one(tmp_path: Path, run: StageRunner, tool: str) -> None:
    model = models.save_external(models.cnn(), tmp_path / "model")
    golden = record(model, tmp_path / "golden")
    outcome = run("simplify", tool, {"model": model}, tool=tool)
    assert {path.name for path in outcome.path.parent.iterdir()} == {"model.onnx", "model.onnx.data"}
    assert compare(outcome.path, golden, tmp_path / "compare").equal


@pytest.mark.parametrize("tool", TOOLS)
def test_two_runs_write_equal_bytes_whatever_the_seed_of_hashes(
    run: StageRunner, orientation: Path, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        written.append(run("simplify", tool, {"model": orientation}, tool=tool).path.read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize("tool", TOOLS)
def test_what_the_tool_cannot_take_goes_on_as_it_was(tmp_path: Path, run: StageRunner, tool: str) -> None:
    """A sequence of maps: half of the tools break it, and one of those would write a file that nobody can open."""
    model = models.save(models.zipmap(), tmp_path / "model")
    outcome = run("simplify", tool, {"model": model}, tool=tool)
    onnxruntime.InferenceSession(str(outcome.path))
    if not outcome.facts:
        (note,) = outcome.notes
        assert note.level == "warning"
        assert f"the simplifier {tool} cannot process this model" in note.text or "outputs changed" in note.text
        assert outcome.path == model


def test_an_environment_holds_only_its_own_tool(tmp_path: Path, run: StageRunner) -> None:
    model = models.save(models.cnn(), tmp_path / "model")
    outcome = run("simplify", "onnxoptimizer", {"model": model}, tool="onnxslim")
    assert "No module named 'onnxslim'" in outcome.notes[0].text


@pytest.mark.parametrize("tool", TOOLS)
def test_the_simplified_model_is_valid_onnx(tmp_path: Path, run: StageRunner, tool: str) -> None:
    model = models.save(models.redundant(), tmp_path / "model")
    outcome = run("simplify", tool, {"model": model}, tool=tool)
    onnx.checker.check_model(str(outcome.path), full_check=True)
    assert outcome.facts["nodes_after"] < outcome.facts["nodes_before"]
