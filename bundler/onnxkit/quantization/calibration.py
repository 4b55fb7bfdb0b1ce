"""Calibrate with the reference's own calibrators, in constant memory.

The reference keeps its data from all samples until the end: for histograms, every activation of every sample.
Here the samples are processed one at a time, and the ranges are equal to the bit. MinMax merges ranges, which the
reference supports. The edges of a histogram depend on the extremes of all samples, so a first pass finds those; a
second one counts, and counts are added.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from onnxruntime.quantization.calibrate import (
    CalibrationMethod,
    HistogramCalibrater,
    HistogramCollector,
    MinMaxCalibrater,
    TensorsData,
    create_calibrator,
)

from bundler.model.errors import StageError
from bundler.onnxkit.golden import GoldenSet, Sample
from bundler.onnxkit.placement_facts import limit_lines
from bundler.onnxkit.quantization.histograms import Histograms
from bundler.onnxkit.quantization.reference import METHODS, own_errors
from bundler.onnxkit.quantization.samples import Progress, run_sample
from bundler.onnxkit.running import map_in_lanes

_PASSED_ON: Final = {
    "CalibTensorRangeSymmetric": "symmetric",
    "CalibMovingAverage": "moving_average",
    "CalibMovingAverageConstant": "averaging_constant",
    "CalibPercentile": "percentile",
}
"""The reference's `extra_options` for calibrators, and the names under which they are passed."""
_SAMPLES_PER_MERGE: Final = 32
"""Samples whose ranges (a few bytes for each tensor) are merged at once."""
_CORES: Final = os.cpu_count() or 1
_MAX_CONCURRENT_SAMPLES: Final = min(4, _CORES)
"""Concurrent samples, each with its activations in memory."""
_MAX_NAMED: Final = 5
_FAILED: Final = "the reference cannot calibrate this model"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRequest:
    """`model` may be shape-inferred or not; `operators` are those whose tensors are measured (empty: all).

    `extra` are the reference's `extra_options`; `large` stores the weights of the measured model externally.
    """

    model: Path
    method: str
    operators: list[str]
    extra: Mapping[str, Any] = field(default_factory=dict)
    large: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """The ranges, without the tensors that are `not_finite`: the reference fails on those even where it keeps them."""

    data: TensorsData
    not_finite: tuple[str, ...] = ()


def calibrate(request: CalibrationRequest, samples: GoldenSet, scratch: Path, progress: Progress) -> Ranges:
    """The range of every tensor over all samples. Raises `StageError`."""
    augmented = scratch / "augmented.onnx"
    with own_errors(_FAILED):
        if request.method == "minmax":
            return _merge_ranges(_open_minmax(request, augmented), samples, progress)
        calibrator = create_calibrator(
            request.model,
            request.operators,
            augmented_model_path=str(augmented),
            calibrate_method=METHODS[request.method],
            use_external_data_format=request.large,
            extra_options=_passed_on(request),
        )
        calibrator.infer_session = _open(augmented, _CORES)
        return _count(calibrator, METHODS[request.method], samples, progress)


def _passed_on(request: CalibrationRequest) -> dict[str, Any]:
    return {to: request.extra[name] for name, to in _PASSED_ON.items() if name in request.extra}


def _open_minmax(request: CalibrationRequest, augmented: Path) -> MinMaxCalibrater:
    """The result of `create_calibrator`, with a session for several samples at once.

    The reference uses all threads for one sample: the operators are small, and threads mostly wait for each other.
    """
    settings = {name: value for name, value in _passed_on(request).items() if name != "percentile"}
    calibrator = MinMaxCalibrater(
        request.model,
        request.operators,
        augmented_model_path=str(augmented),
        use_external_data_format=request.large,
        **settings,
    )
    calibrator.augment_graph()
    calibrator.infer_session = _open(augmented, max(1, _CORES // _MAX_CONCURRENT_SAMPLES))
    return calibrator


def _open(augmented: Path, threads: int) -> onnxruntime.InferenceSession:
    """The reference's session, except that waiting threads do not keep a core busy."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(augmented), options)


def _merge_ranges(calibrator: MinMaxCalibrater, samples: GoldenSet, progress: Progress) -> Ranges:
    """Merge ranges; for a moving average, which cannot be merged, all ranges are kept, a few bytes each."""
    originals = calibrator.model_original_outputs
    names = [output.name for output in calibrator.infer_session.get_outputs()]
    runs = map_in_lanes(partial(run_sample, calibrator.infer_session), samples, _MAX_CONCURRENT_SAMPLES)
    for done, values in enumerate(runs, 1):
        calibrator.intermediate_outputs.append(
            [None if name in originals else value for name, value in zip(names, values, strict=True)]
        )
        if not calibrator.moving_average and done % _SAMPLES_PER_MERGE == 0:
            calibrator.compute_data()
            calibrator.clear_collected_data()
        progress(done, len(samples))
    ranges = dict(calibrator.compute_data().items())
    finite = {name: item for name, item in ranges.items() if np.isfinite(np.array(item.range_value, np.float64)).all()}
    data = TensorsData(CalibrationMethod.MinMax, finite)
    return Ranges(data=data, not_finite=tuple(sorted(ranges.keys() - finite.keys())))


def _count(
    calibrator: HistogramCalibrater, method: CalibrationMethod, samples: GoldenSet, progress: Progress
) -> Ranges:
    collector = HistogramCollector(
        method=calibrator.method,
        symmetric=calibrator.symmetric,
        num_bins=calibrator.num_bins,
        num_quantized_bins=calibrator.num_quantized_bins,
        percentile=calibrator.percentile,
        scenario=calibrator.scenario,
    )
    absolute = calibrator.method == "percentile" and calibrator.symmetric
    wanted = sorted(calibrator.tensors_to_calibrate)
    histograms = Histograms(bins=calibrator.num_bins, absolute=absolute)
    session, total = calibrator.infer_session, len(samples)
    given = {item.name for item in session.get_inputs()}

    def activations(sample: Sample) -> dict[str, Any]:
        values = zip(wanted, run_sample(session, sample, wanted), strict=True)
        # An output that is also an input uses the sample's own memory, and does not keep it alive.
        return {name: value.copy() if name in given else value for name, value in values}

    for done, sample in enumerate(samples, 1):
        histograms.measure(activations(sample))
        progress(done, 2 * total)
    for done, kept in enumerate(_again(histograms, samples, activations), 1):
        histograms.count(kept)
        progress(total + done, 2 * total)
    collector.histogram_dict = histograms.finished()
    if not collector.histogram_dict and histograms.not_finite:
        raise not_finite(tuple(sorted(histograms.not_finite)))
    data = TensorsData(method, collector.compute_collection_result())
    return Ranges(data=data, not_finite=tuple(sorted(histograms.not_finite)))


def not_finite(names: tuple[str, ...]) -> StageError:
    """The error for tensors without a finite range."""
    hint = "keep the nodes around these tensors in floating point (`exclude_nodes`), or check the samples"
    details = limit_lines([f"tensor {name!r}" for name in names], _MAX_NAMED)
    return StageError("non-finite values occurred during calibration", details=details, hint=hint)


def _again(histograms: Histograms, samples: GoldenSet, activations: Any) -> Iterable[dict[str, Any]]:
    """Every sample's activations again: those still in memory first, the others by running the model again."""
    kept = histograms.release()
    count = len(kept)
    while kept:
        yield kept.pop()
    for index in range(count, len(samples)):
        yield activations(samples.sample(index))
