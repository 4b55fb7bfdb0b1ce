"""Writes megabytes to standard output, from C."""

import ctypes

from bundler.model.stage import Report, StageRequest, StageResult


def run(request: StageRequest, report: Report) -> StageResult:
    libc = ctypes.CDLL(None)
    line = b"x" * 1023 + b"\n"
    for _ in range(8 * 1024):
        libc.write(1, line, len(line))
    return StageResult(facts={"written": 8 * 1024 * 1024})
