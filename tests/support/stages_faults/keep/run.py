"""Decides that there is nothing to do."""

from bundler.model.stage import Note, Report, StageRequest, StageResult


def run(request: StageRequest, report: Report) -> StageResult:
    return StageResult(notes=(Note(text="nothing to do"),))
