"""Writes the model with some text added, and counts its runs in a file when asked."""

import time
from pathlib import Path

from bundler.model.stage import Note, Report, StageRequest, StageResult


def run(request: StageRequest, report: Report) -> StageResult:
    if request.options.get("log"):
        with Path(request.options["log"]).open("a") as log:
            log.write("run\n")
    if request.options.get("litter"):
        Path(request.options["litter"]).write_text("a tool's temporary file")
    time.sleep(request.options.get("seconds", 0))
    report(0.5, "half")
    data = request.input("model").read_bytes() + request.options.get("add", "").encode()
    (request.output / "weights").mkdir()
    (request.output / "weights" / "w.bin").write_bytes(data * 3)
    (request.output / "model.onnx").write_bytes(data)
    return StageResult(facts={"bytes": len(data)}, entry="model.onnx", notes=(Note(text="grew"),))
