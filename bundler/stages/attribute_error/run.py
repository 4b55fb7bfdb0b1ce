"""Run the model before and after a step on the same inputs, and rank the nodes where errors arise."""

from __future__ import annotations

import math

from bundler.model.codec import decode, encode
from bundler.model.errors import StageError
from bundler.model.stage import Report, StageRequest, StageResult
from bundler.onnxkit.golden import read_golden
from bundler.onnxkit.quantization.error_sources import ErrorSource, attribute_error, find_probes, measure_probes
from bundler.onnxkit.quantization.tensor_noise import weight_noise
from bundler.onnxkit.structure import read_structure
from bundler.stages.attribute_error.spec import Facts, LossyTensor, Options


def run(request: StageRequest, report: Report) -> StageResult:
    """The fact `tensors`. Raises `StageError` when the models share no tensor or one of them does not run."""
    options = decode(Options, dict(request.options))
    golden = read_golden(request.input("samples"))
    paths = (request.input("model"), request.input("changed"))
    source, changed = (read_structure(path) for path in paths)
    probes = find_probes(source, changed)
    if not probes or not len(golden):
        raise StageError("the two models have no tensor in common" if len(golden) else "there are no samples")
    count = min(options.samples, len(golden))
    measured = measure_probes(paths, probes, lambda: golden.first(count), report)
    noise = weight_noise(*paths)
    weights = {name: sums.noise / sums.signal for name, sums in noise.items() if sums.signal}
    found = attribute_error(source, changed, measured, weights)
    tensors = tuple(_describe(one) for one in found[: options.most])
    return StageResult(facts=encode(Facts(tensors=tensors, compared=len(measured), samples=count)))


def _describe(one: ErrorSource) -> LossyTensor:
    return LossyTensor(
        tensor=one.tensor,
        node=one.node,
        operator=one.operator,
        kind=one.kind,
        sqnr_db=round(-10 * math.log10(one.error), 1) + 0.0 if 0 < one.error < math.inf else None,
        remedy=tuple(one.remedy),
    )
