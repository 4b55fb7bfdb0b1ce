"""Asks for as much memory as it is reported."""

from bundler.model.stage import Report, StageRequest, StageResult


def run(request: StageRequest, report: Report) -> StageResult:
    return StageResult(facts={"bytes": len(bytearray(request.options["bytes"]))})
