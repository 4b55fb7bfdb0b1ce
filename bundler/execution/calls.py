"""One call of a stage: the request that a worker takes, and the result that it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bundler.execution.pool import Progress, Worker
from bundler.execution.stage_sources import stage_packages
from bundler.model.codec import decode
from bundler.model.errors import error_from_json
from bundler.model.stage import StageResult
from bundler.stages.registry import run_module


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCall:
    """A stage by name, with its `inputs` by role and its `options`. It writes its files to `output`, runs in `folder`,
    and is ended after `seconds`. `compiler` is the program of its toolchain.
    """

    stage: str
    inputs: Mapping[str, Path]
    options: Mapping[str, Any]
    output: Path
    folder: Path
    seconds: float
    compiler: Path | None = None


def call_stage(worker: Worker, call: StageCall, progress: Progress) -> StageResult:
    """Run it in `worker`. Raises the stage's error, and `StageError` when the worker dies or is ended."""
    request = {
        "stage": call.stage,
        "module": run_module(call.stage),
        "packages": stage_packages(call.stage),
        "inputs": {role: str(path) for role, path in call.inputs.items()},
        "options": dict(call.options),
        "output": str(call.output),
        "folder": str(call.folder),
        "compiler": str(call.compiler) if call.compiler else None,
    }
    answer = worker.wait(worker.post(request), call.stage, call.seconds, progress)
    if "error" in answer:
        raise error_from_json(answer["error"])
    return decode(StageResult, answer["result"])
