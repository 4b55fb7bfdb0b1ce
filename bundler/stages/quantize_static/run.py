"""Quantise weights and activations by the ranges that samples show: ONNX Runtime's quantiser, in constant memory."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bundler.model.codec import decode
from bundler.model.stage import Report, StageRequest, StageResult
from bundler.stages.quantize_static.keeping import Trial, keep_worst_float
from bundler.stages.quantize_static.naming import with_names
from bundler.stages.quantize_static.quantizing import Loaded, describe_recipe, load, quantize
from bundler.stages.quantize_static.recipe import Recipe, for_qnn, make_recipe
from bundler.stages.quantize_static.spec import Options
from bundler.workbench.quantization.calibration import CalibrationRequest, Ranges, calibrate
from bundler.workbench.quantization.outcome import describe_outcome
from bundler.workbench.quantization.preparing import prepare
from bundler.workbench.quantization.samples import SampleStream, open_samples
from bundler.workbench.quantization.selection import (
    STATIC_OPERATORS,
    check_nodes,
    check_not_quantized,
    choose_operators,
)
from bundler.workbench.quantization.structures import find_structures
from bundler.workbench.structure import read_structure

ENTRY: Final = "model.onnx"
_PREPARED: Final = 0.1
_CALIBRATED: Final = 0.8
"""Shares of the work that are done by then, roughly."""


def run(request: StageRequest, report: Report) -> StageResult:
    """`model.onnx`, byte for byte what the reference writes. Raises `StageError`."""
    source, options = request.input("model"), decode(Options, dict(request.options))
    samples = open_samples(request.input("samples"))
    before = read_structure(source)
    check_not_quantized(before, options.operators)
    check_nodes(before, options.exclude_nodes)
    operators = choose_operators(before, options.operators, options.exclude_operators, STATIC_OPERATORS)
    recipe = make_recipe(options, operators)
    report(0.0, "preparing")
    target = request.output / ENTRY
    with tempfile.TemporaryDirectory(dir=request.output) as folder:
        scratch = Path(folder)
        prepared = prepare(
            source,
            scratch,
            preprocess=options.preprocess,
            qnn=options.flavour == "qnn",
            least_opset=recipe.least_opset,
            raise_opset=options.raise_opset,
        )
        if options.flavour == "qnn":
            recipe = for_qnn(recipe, prepared.path, options, operators)
        loaded = load(prepared, recipe, scratch, raise_opset=options.raise_opset)
        if options.exclude_structures:
            loaded = with_names(loaded, scratch)
            names = find_structures(read_structure(loaded.path), options.exclude_structures)
            recipe = replace(recipe, exclude_nodes=(*recipe.exclude_nodes, *names))
        ranges = _calibrate(loaded, recipe, options.calibration, samples, report)
        report(_CALIBRATED, "quantising")
        trial = Trial(loaded, recipe, ranges, samples, scratch)
        kept: Mapping[str, Any] = {}
        if options.keep_float == "auto":
            trial, kept = keep_worst_float(trial, options.least_sqnr_db, report)
        quantize(trial.loaded, trial.recipe, ranges, target)
    facts = {**describe_outcome(before, target, qdq=recipe.format == "qdq"), **describe_recipe(recipe)}
    facts |= {"calibration": {"method": options.calibration, "samples": len(samples)}}
    facts |= {"preprocess": prepared.form, "opset": loaded.opset, **kept}
    return StageResult(facts=facts, entry=ENTRY, notes=(*prepared.notes, *loaded.notes))


def _calibrate(loaded: Loaded, recipe: Recipe, method: str, samples: SampleStream, report: Report) -> Ranges:
    asked = CalibrationRequest(
        model=loaded.path,
        method=method,
        operators=recipe.operators,
        extra=recipe.extra,
        large=loaded.large,
    )

    def progress(done: int, total: int) -> None:
        report(_PREPARED + (_CALIBRATED - _PREPARED) * done / total, f"calibrating: sample {done} of {total}")

    return calibrate(asked, samples, loaded.path.parent, progress)
