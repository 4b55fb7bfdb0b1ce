"""Measure the error of outputs that the bundle's own code gave: what its loader says of them is not asked."""

from __future__ import annotations

from bundler.model.codec import encode
from bundler.model.errors import StageError
from bundler.model.stage import Report, StageRequest, StageResult
from bundler.onnxkit.golden import Sample, read_golden
from bundler.onnxkit.golden_tally import GoldenTally


def run(request: StageRequest, report: Report) -> StageResult:
    """The comparison as facts. Raises `StageError` where a file is missing, is not what the index says, or is a
    link.
    """
    golden = read_golden(request.input("golden"))
    given = read_golden(request.input("outputs"))
    if len(given) > len(golden):
        raise StageError(f"outputs of {len(given)} samples were given for a golden set of {len(golden)}", hint=_HINT)
    tally = GoldenTally(golden, ())
    for index, answer in enumerate(given):
        report(index / len(given), f"sample {index + 1} of {len(given)}")
        sample = golden.sample(index)
        _check(sample, answer)
        tally.add(sample, answer.outputs)
    return StageResult(facts=encode(tally.result()))


_HINT = "the bundle's code is not what bundler wrote; build it again"


def _check(sample: Sample, answer: Sample) -> None:
    """An output that the golden set lacks has no figures: it would be left out in silence."""
    other = sorted(answer.outputs.keys() - sample.outputs.keys())
    if other:
        raise StageError(f"an output {other[0][:80]!r} was given that the golden set lacks", hint=_HINT)
