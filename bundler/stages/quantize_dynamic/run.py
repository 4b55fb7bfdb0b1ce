"""Quantise weights ahead of time and activations at run time: ONNX Runtime's `quantize_dynamic`."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from onnx import TensorProto
from onnxruntime.quantization.onnx_quantizer import ONNXQuantizer
from onnxruntime.quantization.quant_utils import QuantizationMode, QuantType, update_opset_version

from bundler.model.codec import decode
from bundler.model.errors import StageError
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.quantization.extra_options import check_extra
from bundler.onnxkit.quantization.outcome import describe_outcome
from bundler.onnxkit.quantization.preparing import Preparation, Prepared, prepare
from bundler.onnxkit.quantization.reference import TYPES, own_errors
from bundler.onnxkit.quantization.selection import DYNAMIC_OPERATORS, check_not_quantized, choose_operators
from bundler.onnxkit.structure import read_structure
from bundler.stages.quantize_dynamic.spec import Options

ENTRY: Final = "model.onnx"
_UNTYPED: Final = "DefaultTensorType"


def run(request: StageRequest, report: Report) -> StageResult:
    """`model.onnx`, byte for byte what the reference writes. Raises `StageError`."""
    source, options = request.input("model"), decode(Options, dict(request.options))
    before = read_structure(source)
    check_not_quantized(before, options.operators)
    operators = choose_operators(before, options.operators, options.exclude_operators, DYNAMIC_OPERATORS)
    report(0.0, "preparing")
    with tempfile.TemporaryDirectory(dir=request.output) as scratch:
        asked = Preparation(
            preprocess=options.preprocess,
            shapes=options.shapes,
            operators=operators or DYNAMIC_OPERATORS,
            raise_opset=options.raise_opset,
        )
        prepared = prepare(source, Path(scratch), asked)
        resolver = prepared.resolver(before)
        excluded = resolver.resolve(options.exclude_nodes)
        prepared = replace(prepared, named=any(resolver.prepared[name].name != name for name in excluded))
        report(0.5, "quantising")
        # The reference replaces Gemm by MatMul, with a derived name, before it looks at names.
        later = (f"{name}_MatMul" for name in excluded if resolver.prepared[name].op_type == "Gemm")
        options = replace(options, exclude_nodes=(*excluded, *later))
        notes = _quantize(prepared, request.output / ENTRY, operators, options)
    facts = describe_outcome(before, request.output / ENTRY, qdq=False)
    facts |= {"preprocess": prepared.form, "opset": prepared.opset, "exclude_nodes": list(excluded)}
    return StageResult(facts=facts, entry=ENTRY, notes=(*prepared.notes, *notes))


def _quantize(prepared: Prepared, target: Path, operators: list[str] | None, options: Options) -> tuple[Note, ...]:
    """Quantise; where shape inference fails, retry with the default type that the reference asks for (float32)."""
    extra = check_extra(options.extra, static=False)
    try:
        _call(prepared, target, operators, options, extra)
    except StageError as error:
        if _UNTYPED in extra or not any(_UNTYPED in line for line in error.details):
            raise
        _call(prepared, target, operators, options, {**extra, _UNTYPED: TensorProto.FLOAT})
        return (Note(text="some tensors' types could not be inferred; float32 is assumed"),)
    return ()


def _call(
    prepared: Prepared, target: Path, operators: list[str] | None, options: Options, extra: dict[str, Any]
) -> None:
    """The same as the reference's `quantize_dynamic`, without writing the whole model to a file first."""
    weights = TYPES[options.weight_type]
    with own_errors("the reference cannot quantise this model dynamically"):
        quantizer = ONNXQuantizer(
            model=update_opset_version(prepared.read(), weights),
            per_channel=options.per_channel,
            reduce_range=options.reduce_range,
            mode=QuantizationMode.IntegerOps,
            static=False,
            weight_qType=weights,
            activation_qType=QuantType.QUInt8,
            tensors_range=None,
            nodes_to_quantize=[],
            nodes_to_exclude=list(options.exclude_nodes),
            op_types_to_quantize=operators or list(DYNAMIC_OPERATORS),
            extra_options={"MatMulConstBOnly": True, **extra},
        )
        quantizer.quantize_model()
        quantizer.model.save_model_to_file(str(target), prepared.large)
