"""Never ends; with `native`, holds the interpreter all the while."""

import ctypes
import os
import time
from pathlib import Path

from bundler.model.stage import Report, StageRequest, StageResult


def run(request: StageRequest, report: Report) -> StageResult:
    if request.options.get("mark"):
        Path(request.options["mark"]).write_text(str(os.getpid()))
    if request.options.get("native"):
        ctypes.PyDLL(None).sleep(300)
    time.sleep(300)
    raise AssertionError
