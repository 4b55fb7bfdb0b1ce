"""Call the reference's quantisers on a model in memory with known ranges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import ModelProto
from onnxruntime.quantization import QuantFormat
from onnxruntime.quantization.onnx_quantizer import ONNXQuantizer
from onnxruntime.quantization.qdq_quantizer import QDQQuantizer
from onnxruntime.quantization.quant_utils import QuantizationMode, update_opset_version
from onnxruntime.quantization.quantize import check_static_quant_arguments

from bundler.model.errors import StageError
from bundler.model.stage import Note
from bundler.onnxkit.quantization.calibration import Ranges, not_finite
from bundler.onnxkit.quantization.preparing import MIN_OPSET, Prepared, save
from bundler.onnxkit.quantization.reference import REFERENCE_ERRORS, TYPES, own_errors, quiet
from bundler.onnxkit.structure import read_constant, read_structure, standard_opset
from bundler.stages.quantize_static.biases import flatten_biases
from bundler.stages.quantize_static.recipe import WIDE_OPSET, Recipe

_FORMATS: Final = {"qdq": QuantFormat.QDQ, "qoperator": QuantFormat.QOperator}
_SCALE: Final = "_scale"
_NO_WIDENING: Final = "QDQDisableWeightAdjustForInt32Bias"
_AMBIGUOUS: Final = "truth value of an array"
FAILED: Final = "the reference cannot quantise this model statically"


def raise_for(recipe: Recipe, known: Prepared, scratch: Path, *, raise_opset: bool) -> Prepared:
    """Raise the opset to 21 for 16-bit types, as the reference does; else use ONNX Runtime's own operators."""
    if known.opset >= (WIDE_OPSET if recipe.wide else MIN_OPSET):
        return known
    if not recipe.wide:
        with own_errors(f"the model's opset {known.opset} cannot be raised", hint="export the model again"):
            return _raised(known, recipe, scratch)
    own = "ONNX Runtime's own operators are used for 16-bit Q/DQ pairs"
    if not raise_opset:
        note = Note(text=f"{own}: the opset {known.opset} has none")
        return replace(known, notes=(*known.notes, note))
    try:
        with quiet():
            return _raised(known, recipe, scratch)
    except REFERENCE_ERRORS:
        note = Note(text=f"{own}: the opset {known.opset} cannot be raised to {WIDE_OPSET}")
        return replace(known, notes=(*known.notes, note))


def _raised(known: Prepared, recipe: Recipe, scratch: Path) -> Prepared:
    model = update_opset_version(known.read(), TYPES[recipe.weight_type], TYPES[recipe.activation_type])
    save(model, scratch / "raised-by-reference.onnx", large=known.large)
    reached = standard_opset(model)
    note = Note(text=f"the opset was raised from {known.opset} to {reached}, which the format requires")
    path = scratch / "raised-by-reference.onnx"
    return replace(known, path=path, opset=reached, marked=True, notes=(*known.notes, note))


def quantize(loaded: Prepared, recipe: Recipe, ranges: Ranges, target: Path) -> None:
    """Write the quantised model to `target`, as the reference saves it. Raises `StageError`."""
    try:
        _quantize(loaded, recipe, ranges, target)
    except StageError as error:
        if ranges.not_finite:
            raise not_finite(ranges.not_finite) from error
        raise
    _check_scales(target, ranges)


def _quantize(loaded: Prepared, recipe: Recipe, ranges: Ranges, target: Path) -> None:
    """Quantise; if the reference fails on a bias's shape while it widens the bias's scale, retry without widening."""
    formats = (_FORMATS[recipe.format], TYPES[recipe.activation_type], TYPES[recipe.weight_type])
    try:
        with own_errors(FAILED):
            check_static_quant_arguments(*formats)
            _save(_quantizer(loaded.read(), recipe, ranges), target, loaded)
    except StageError as error:
        if _NO_WIDENING in recipe.extra or not any(_AMBIGUOUS in line for line in error.details):
            raise
        plain = replace(recipe, extra={**recipe.extra, _NO_WIDENING: True})
        with own_errors(FAILED):
            _save(_quantizer(loaded.read(), plain, ranges), target, loaded)


def _save(quantizer: Any, target: Path, loaded: Prepared) -> None:
    quantizer.quantize_model()
    quantizer.model.save_model_to_file(str(target), loaded.large)


def _quantizer(model: ModelProto, recipe: Recipe, ranges: Ranges) -> Any:
    if recipe.per_channel:
        flatten_biases(model.graph)
    settings: dict[str, Any] = {
        "model": model,
        "per_channel": recipe.per_channel,
        "reduce_range": recipe.reduce_range,
        "weight_qType": TYPES[recipe.weight_type],
        "activation_qType": TYPES[recipe.activation_type],
        "tensors_range": ranges.data,
        "nodes_to_quantize": list(recipe.only_nodes),
        "nodes_to_exclude": list(recipe.exclude_nodes),
        "op_types_to_quantize": recipe.operators,
        "extra_options": dict(recipe.extra),
    }
    if recipe.format == "qoperator":
        return ONNXQuantizer(mode=QuantizationMode.QLinearOps, static=True, **settings)
    return QDQQuantizer(**settings)


def _check_scales(target: Path, ranges: Ranges) -> None:
    """Raise `StageError` for scales that are not finite: the model would load and its outputs would be meaningless."""
    for tensor in read_structure(target).graph.initializer:
        if tensor.name.endswith(_SCALE) and tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16):
            values = read_constant(tensor)  # None for a long payload, which a structure does not hold
            if values is not None and not np.isfinite(values).all():
                raise not_finite(ranges.not_finite or (tensor.name.removesuffix(_SCALE),))
