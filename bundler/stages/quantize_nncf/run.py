"""Quantise a model with NNCF, with one sample in memory at a time."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
from onnx import ModelProto

from bundler.model.codec import decode
from bundler.model.errors import StageError, UsageError
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.golden import GoldenSet, read_golden
from bundler.onnxkit.sessions import RUNTIME_ERRORS, clean_message
from bundler.onnxkit.signatures import check_interface
from bundler.onnxkit.structure import count_operators, iterate_nodes, read_structure, standard_opset
from bundler.stages.quantize_nncf.preparing import check_input, find_excluded, prepare_model
from bundler.stages.quantize_nncf.spec import Options
from bundler.stages.quantize_nncf.telemetry import silence_telemetry

ENTRY: Final = "model.onnx"
_LIBRARY_ERRORS: Final = (KeyError, IndexError, AttributeError, NotImplementedError, AssertionError, OverflowError)
"""What NNCF raises, besides its own errors, on a graph that it does not support."""
_PASSES: Final = 2
"""Approximate number of passes over the samples: for the ranges, and again in part for biases or smoothing."""


def run(request: StageRequest, report: Report) -> StageResult:
    """A QDQ model. Raises `StageError`, `ModelError`, and `UsageError` for unknown nodes."""
    source, options = request.input("model"), decode(Options, dict(request.options))
    before = read_structure(source)
    check_input(before)
    samples = Samples(read_golden(request.input("samples")), report)
    report(0.0, "preparing the model")
    excluded = find_excluded(before, options)
    model = prepare_model(source, request.output, options)
    quantized = _quantize(model, samples, excluded, options)
    _check(before, quantized)
    target = request.output / ENTRY
    target.write_bytes(quantized.SerializeToString(deterministic=True))
    after = read_structure(target)
    facts = {
        "samples": len(samples),
        "opset": standard_opset(after),
        "nodes_before": sum(1 for _ in iterate_nodes(before)),
        "nodes_after": sum(1 for _ in iterate_nodes(after)),
        "operators": count_operators(after),
        "quantized": _count_quantized(after),
        "bytes": target.stat().st_size,
    }
    return StageResult(facts=facts, entry=ENTRY, notes=_notes(before, after))


@dataclass(slots=True)
class Samples:
    """The calibration set in NNCF's form: it is read as often as requested, with one sample in memory at a time."""

    golden: GoldenSet
    report: Report
    read: int = 0

    def __len__(self) -> int:
        return len(self.golden.entries)

    def __iter__(self) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> dict[str, np.ndarray[Any, Any]]:
        """The inputs of one sample. Raises `UsageError` for one with values other than tensors."""
        self.read += 1
        self.report(min(0.95, 0.1 + 0.85 * self.read / (_PASSES * len(self))), f"calibrating, sample {index + 1}")
        sample = self.golden.sample(index)
        tensors = {name: value for name, value in sample.inputs.items() if isinstance(value, np.ndarray)}
        if len(tensors) < len(sample.inputs):
            raise UsageError(f"sample {sample.name} holds values that are not tensors: NNCF cannot calibrate on it")
        return tensors


def _quantize(model: ModelProto, samples: Samples, excluded: tuple[str, ...], options: Options) -> ModelProto:
    if not len(samples):
        raise UsageError("there are no samples to calibrate on", hint="give some with --calibration")
    silence_telemetry()
    import nncf  # type: ignore[import-not-found]  # noqa: PLC0415 - only after its telemetry was disabled

    nncf.set_log_level(logging.ERROR)
    preset = None if options.preset == "auto" else nncf.QuantizationPreset(options.preset)
    kind = None if options.model_type == "none" else nncf.ModelType(options.model_type)
    scope = nncf.IgnoredScope(names=list(excluded), types=list(options.exclude_operators), validate=False)
    own = [item for item in vars(nncf.errors).values() if isinstance(item, type) and issubclass(item, Exception)]
    errors: tuple[type[Exception], ...] = (*own, *RUNTIME_ERRORS, *_LIBRARY_ERRORS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result: ModelProto = nncf.quantize(
                model,
                nncf.Dataset(samples),
                preset=preset,
                target_device=nncf.TargetDevice(options.target.upper()),
                subset_size=len(samples),
                fast_bias_correction=options.fast_bias_correction,
                model_type=kind,
                ignored_scope=scope,
            )
    except errors as cause:
        raise StageError(
            "NNCF cannot quantise this model",
            details=(f"{type(cause).__name__}: {clean_message(cause)}",),
            hint="exclude the operators that it does not support, or quantise with ONNX Runtime: "
            "--set precision.method=static-int8",
        ) from cause
    return result


def _check(before: ModelProto, after: ModelProto) -> None:
    check_interface(before, after)
    if not any(node.op_type == "QuantizeLinear" for node in iterate_nodes(after)):
        hint = "keep its precision (--set precision.method=none), or exclude less from quantisation"
        details = (f"it has {', '.join(count_operators(before))}"[:600],)
        raise StageError("NNCF found nothing to quantise in this model", details=details, hint=hint)
    try:
        onnx.checker.check_model(after)
    except onnx.checker.ValidationError as cause:
        first = str(cause).partition("\n")[0][:300]
        raise StageError("NNCF wrote an invalid model", details=(first,)) from cause


def _count_quantized(model: ModelProto) -> dict[str, int]:
    """Number of nodes with a quantised input, by operator."""
    values = {name for node in model.graph.node if node.op_type == "DequantizeLinear" for name in node.output}
    counts = Counter(node.op_type for node in model.graph.node if not values.isdisjoint(node.input))
    del counts["QuantizeLinear"]
    return dict(sorted(counts.items()))


def _notes(before: ModelProto, after: ModelProto) -> tuple[Note, ...]:
    old, new = standard_opset(before), standard_opset(after)
    if old == new:
        return ()
    return (Note(text=f"the model was raised from opset {old} to {new}, the first with per-channel quantisation"),)
