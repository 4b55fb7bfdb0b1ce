"""Models with large weights are never held in memory more often than their use needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import models

MEGABYTES = 400
CODE = """
import importlib, os, resource, sys
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
from pathlib import Path
from bundler.model.stage import StageRequest
stage, output, options, *inputs = sys.argv[1:]
run = importlib.import_module(f"bundler.stages.{stage}.run").run
Path(output).mkdir()
given = {role: Path(path) for role, path in (item.split("=", 1) for item in inputs)}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run(StageRequest(inputs=given, options=eval(options), output=Path(output)), lambda share, text: None)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1000)
"""


def peak_growth(stage: str, output: Path, options: dict[str, object], **inputs: Path) -> int:
    """Megabytes that a stage adds to its process at most, files that it maps included."""
    command = [sys.executable, "-c", CODE, stage, str(output), repr(options)]
    command += [f"{role}={path}" for role, path in inputs.items()]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the resource module is for POSIX systems")
def test_stages_stay_far_below_two_and_a_half_models(tmp_path: Path) -> None:
    model = models.big_external(tmp_path / "model", megabytes=MEGABYTES)
    golden, optimized = tmp_path / "golden", tmp_path / "optimized"
    assert peak_growth("inspect", tmp_path / "inspect", {}, model=model) < 0.1 * MEGABYTES
    assert peak_growth("record_golden", golden, {}, model=model) < 1.3 * MEGABYTES
    assert peak_growth("fix_dimensions", tmp_path / "f", {"dimensions": {"batch": 1}}, model=model) < 0.1 * MEGABYTES
    assert peak_growth("optimize", optimized, {"external_threshold": 1024}, model=model) < 0.3 * MEGABYTES
    options = {"session": {"graph_optimization_level": "none"}}
    inputs = {"model": optimized / "model.onnx", "golden": golden / "index.json"}
    assert peak_growth("compare", tmp_path / "compare", options, **inputs) < 2.3 * MEGABYTES
