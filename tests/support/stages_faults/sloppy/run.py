"""Breaks the contract in the way it is reported to."""

import os

from bundler.model.stage import Report, StageRequest, StageResult


def run(request: StageRequest, report: Report) -> StageResult:
    how = request.options["how"]
    entry = request.output / "model.onnx"
    if how == "symlink":
        entry.symlink_to(request.input("model"))
    elif how == "hardlink":
        os.link(request.input("model"), entry)
    elif how == "escape":
        (request.output.parent / "escaped").write_text("out")
        return StageResult(entry="../escaped")
    return StageResult(entry="model.onnx")
