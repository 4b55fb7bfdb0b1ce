"""Finds out what a stage sees of the world."""

import importlib.util
import os
import resource
import sys

from bundler.model.stage import Report, StageRequest, StageResult


def run(request: StageRequest, report: Report) -> StageResult:
    names = ("bundler.model.stage", "pydantic", "onnxruntime", "pytest")
    importable = {name: importlib.util.find_spec(name) is not None for name in names}
    off = os.environ.get("ORT_DISABLE_TELEMETRY") == "1"
    kinds = {"memory": resource.RLIMIT_DATA, "file": resource.RLIMIT_FSIZE, "core": resource.RLIMIT_CORE}
    limits = {name: list(resource.getrlimit(kind)) for name, kind in kinds.items()}
    return StageResult(facts={"importable": importable, "telemetry_off": off, "path": sys.path, "limits": limits})
