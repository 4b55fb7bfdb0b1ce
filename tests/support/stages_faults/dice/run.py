"""Answers what another program wrote: no key can know it."""

from pathlib import Path

from bundler.model.stage import Report, StageRequest, StageResult


def run(request: StageRequest, report: Report) -> StageResult:
    del report
    return StageResult(facts={"answer": Path(request.options["ask"]).read_text()})
