"""Dies in native code."""

import ctypes
import os
import sys

from bundler.model.stage import Report, StageRequest, StageResult


def run(request: StageRequest, report: Report) -> StageResult:
    print("last words of the tool", file=sys.stderr, flush=True)  # noqa: T201
    if request.options.get("how") == "segfault":
        ctypes.string_at(0)
    if request.options.get("how") == "exit":
        os._exit(7)
    os.abort()
