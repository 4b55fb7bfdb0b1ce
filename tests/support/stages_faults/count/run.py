"""Finds a fact, writes nothing, and chatters on every standard stream."""

import os

from bundler.model.stage import Report, StageRequest, StageResult


def run(request: StageRequest, report: Report) -> StageResult:
    print("chatter {not json")  # noqa: T201
    os.system("echo from a child")  # noqa: S605
    report(1.0, "done")
    return StageResult(facts={"bytes": request.input("model").stat().st_size, "pid": os.getpid()})
