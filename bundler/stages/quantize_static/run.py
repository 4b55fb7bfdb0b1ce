"""Quantise weights and activations by calibrated ranges with ONNX Runtime's quantiser, in constant memory."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from onnx import ModelProto

from bundler.model.codec import decode
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.golden import GoldenSet
from bundler.onnxkit.quantization.calibration import CalibrationRequest, Ranges, calibrate
from bundler.onnxkit.quantization.outcome import describe_outcome
from bundler.onnxkit.quantization.preparing import Preparation, Prepared, prepare
from bundler.onnxkit.quantization.samples import open_samples
from bundler.onnxkit.quantization.selection import STATIC_OPERATORS, check_not_quantized, choose_operators
from bundler.onnxkit.quantization.structures import find_structures
from bundler.onnxkit.structure import read_structure
from bundler.stages.quantize_static.keeping import Trial, keep_worst_float
from bundler.stages.quantize_static.quantizing import quantize, raise_for
from bundler.stages.quantize_static.recipe import Recipe, for_provider, make_recipe
from bundler.stages.quantize_static.spec import Options

ENTRY: Final = "model.onnx"
_PREPARED: Final = 0.1
_CALIBRATED: Final = 0.8
"""Approximate progress at these points."""


def run(request: StageRequest, report: Report) -> StageResult:
    """`model.onnx`, byte for byte what the reference writes. Raises `StageError`."""
    source, options = request.input("model"), decode(Options, dict(request.options))
    samples = open_samples(request.input("samples"))
    before = read_structure(source)
    check_not_quantized(before, options.operators)
    operators = choose_operators(before, options.operators, options.exclude_operators, STATIC_OPERATORS)
    recipe = make_recipe(options, operators)
    report(0.0, "preparing")
    target = request.output / ENTRY
    with tempfile.TemporaryDirectory(dir=request.output) as folder:
        scratch = Path(folder)
        asked = Preparation(
            preprocess=options.preprocess,
            shapes=options.shapes,
            rules=options.rules,
            operators=recipe.operators,
            least_opset=recipe.least_opset,
            raise_opset=options.raise_opset,
        )
        prepared = prepare(source, scratch, asked)
        if options.rules:
            excluded = prepared.resolver(before).resolve(options.exclude_nodes)
            recipe = for_provider(recipe, prepared.path, options, operators, excluded)
        loaded = raise_for(recipe, prepared, scratch, raise_opset=options.raise_opset)
        loaded, recipe = _exclude(loaded, recipe, before, options)
        ranges = _calibrate(loaded, recipe, options.calibration, samples, report)
        report(_CALIBRATED, "quantising")
        trial = Trial(loaded, recipe, ranges, samples, scratch)
        kept: Mapping[str, Any] = {}
        if options.keep_float == "auto":
            trial, kept = keep_worst_float(trial, options.least_sqnr_db, report)
        quantize(trial.loaded, trial.recipe, ranges, target)
    facts = describe_outcome(before, target, qdq=recipe.format == "qdq")
    facts |= {name: getattr(recipe, name) for name in ("format", "activation_type", "weight_type", "per_channel")}
    facts |= {"exclude_nodes": list(recipe.exclude_nodes)}
    facts |= {"calibration": {"method": options.calibration, "samples": len(samples)}}
    facts |= {"preprocess": prepared.form, "opset": loaded.opset, **kept}
    return StageResult(facts=facts, entry=ENTRY, notes=(*loaded.notes, *_describe_unmeasured(kept)))


def _describe_unmeasured(kept: Mapping[str, Any]) -> tuple[Note, ...]:
    if not kept or kept["sqnr_db"] is not None:
        return ()
    text = "no output has floating-point numbers to measure, so no node is kept in floating point (`keep_float`)"
    return (Note(text=text, level="warning"),)


def _exclude(loaded: Prepared, recipe: Recipe, before: ModelProto, options: Options) -> tuple[Prepared, Recipe]:
    """Both with the nodes to exclude; unnamed nodes get names when an excluded one needs a name."""
    resolver = loaded.resolver(before)
    excluded = resolver.resolve(options.exclude_nodes)
    if options.exclude_structures:
        named = replace(loaded, named=True).read_structure()
        excluded = (*excluded, *find_structures(named, options.exclude_structures))
    loaded = replace(loaded, named=any(resolver.prepared[name].name != name for name in excluded))
    return loaded, replace(recipe, exclude_nodes=tuple(dict.fromkeys(excluded)))


def _calibrate(loaded: Prepared, recipe: Recipe, method: str, samples: GoldenSet, report: Report) -> Ranges:
    asked = CalibrationRequest(
        model=loaded.path, method=method, operators=recipe.operators, extra=recipe.extra, large=loaded.large
    )

    def progress(done: int, total: int) -> None:
        report(_PREPARED + (_CALIBRATED - _PREPARED) * done / total, f"calibrating: sample {done} of {total}")

    return calibrate(asked, samples, loaded.path.parent, progress)
