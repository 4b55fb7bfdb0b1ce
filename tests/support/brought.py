"""Comparing outputs that were brought back, in the test's own process."""

from __future__ import annotations

from pathlib import Path

from bundler.model.codec import decode
from bundler.model.results import Comparison
from bundler.model.stage import StageRequest
from bundler.stages.compare_outputs.run import run


def compare(golden: Path, outputs: Path) -> Comparison:
    """What a build has a worker do."""
    request = StageRequest(inputs={"golden": golden, "outputs": outputs}, options={}, output=outputs.parent)
    return decode(Comparison, run(request, lambda *_: None).facts)
