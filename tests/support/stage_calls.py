"""Call a stage's `run` as a worker does, without one."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from bundler.model.codec import conforms, decode
from bundler.model.results import Comparison
from bundler.model.stage import StageRequest, StageResult
from bundler.stages.registry import find_stage


def call_stage(name: str, output: Path, inputs: dict[str, Path], **options: Any) -> StageResult:
    """Run the stage `name` into the fresh folder `output`. Its facts are what its spec says: else none is recalled."""
    output.mkdir(parents=True)
    run = importlib.import_module(f"bundler.stages.{name}.run").run
    result: StageResult = run(StageRequest(inputs=inputs, options=options, output=output), lambda _share, _text: None)
    assert conforms(find_stage(name).facts, json.loads(json.dumps(result.facts)))
    return result


def record(model: Path, output: Path, samples: Path | None = None, initial: Path | None = None, **options: Any) -> Path:
    """Record a golden set and answer the path of its index. The state `initial` begins with the file of that name."""
    inputs = {"model": model} | ({"samples": samples} if samples else {}) | ({"initial": initial} if initial else {})
    result = call_stage("record_golden", output, inputs, **options)
    assert result.entry is not None
    return output / result.entry


def compare(model: Path, golden: Path, output: Path, **options: Any) -> Comparison:
    """Compare a model with a golden set."""
    result = call_stage("compare", output, {"model": model, "golden": golden}, **options)
    return decode(Comparison, dict(result.facts))
