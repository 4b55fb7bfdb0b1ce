"""An optional stage that dies."""

import os

from bundler.model.stage import Report, StageRequest, StageResult


def run(request: StageRequest, report: Report) -> StageResult:
    os.abort()
