"""Raises what it is reported to."""

import time

from bundler.model.errors import ModelError
from bundler.model.stage import Report, StageRequest, StageResult


def run(request: StageRequest, report: Report) -> StageResult:
    kind = request.options["kind"]
    time.sleep(request.options.get("after", 0))
    if kind == "model":
        raise ModelError("the model is bad", hint="mend it", details=("line 1", "line 2"))
    if kind == "memory":
        raise MemoryError
    if kind == "exit":
        raise SystemExit(3)
    raise ValueError("a defect in the stage\nwith a second line")
