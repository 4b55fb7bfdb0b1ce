"""Quantise weights with ONNX Runtime's own quantiser, and report how many were quantised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from onnx import ModelProto

from bundler.model.codec import decode
from bundler.model.errors import StageError
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.linked_models import open_linked, write_linked
from bundler.onnxkit.signatures import check_interface
from bundler.onnxkit.structure import (
    count_operators,
    iterate_graphs,
    iterate_nodes,
    read_structure,
    standard_opset,
    tensor_bytes,
)
from bundler.stages.quantize_weights.block_quantizer import quantize_blocks
from bundler.stages.quantize_weights.gptq import quantize_gptq
from bundler.stages.quantize_weights.spec import Options
from bundler.stages.quantize_weights.targets import WEIGHT_INPUT, Targets, prepare_targets

ENTRY = "model.onnx"
_QUANTIZED: Final[Mapping[str, tuple[int, ...]]] = {"MatMulNBits": (1, 2, 3), "GatherBlockQuantized": (0, 2, 3)}
"""The reference's quantised operators, and their inputs that hold the weight."""
_ALREADY: Final = frozenset({"com.microsoft.MatMulNBits", "DequantizeLinear", "MatMulInteger", "QLinearMatMul"})
_REPORTED: Final = ("algorithm", "bits", "block_size", "symmetric", "accuracy_level")
_MIN_BLOCK: Final = 16
_FOUR_BIT_OPSET: Final = 21
_FOUR_BITS: Final = 4


def run(request: StageRequest, report: Report) -> StageResult:
    """A model with `MatMulNBits` instead of matrix products. Raises `StageError` when there is none to replace."""
    source, options = request.input("model"), decode(Options, dict(request.options))
    before, linked = read_structure(source), open_linked(source)
    _check_options(options, before, has_samples="samples" in request.inputs)
    targets = prepare_targets(linked, options)
    if not targets.operators:
        raise _nothing(before, targets, options)

    def tick(done: int, total: int) -> None:
        report(0.9 * done / total, f"weight {done} of {total}")

    samples = 0
    if options.algorithm == "gptq":
        samples = quantize_gptq(linked, targets, options, request.input("samples"), tick)
    else:
        quantize_blocks(linked, targets, options, tick)
    report(0.9, "writing")
    after_bytes = _weight_bytes(linked.model)
    after = write_linked(linked, request.output / ENTRY)
    check_interface(before, after)
    return StageResult(
        facts={
            **{name: getattr(options, name) for name in _REPORTED},
            "quantized": dict(sorted(Counter(targets.operators.values()).items())),
            "left": dict(sorted(targets.left.items())),
            "samples": samples,
            "weight_bytes_before": sum(targets.weights.values()),
            "weight_bytes_after": after_bytes,
            "bytes": sum(path.stat().st_size for path in request.output.iterdir()),
        },
        entry=ENTRY,
        notes=_notes(before, options),
    )


def _check_options(options: Options, model: ModelProto, *, has_samples: bool) -> None:
    """Raise `StageError` where the reference would fail an assertion or do nothing."""
    unknown = [name for name in options.operators if name not in WEIGHT_INPUT]
    opset = standard_opset(model)
    size = options.block_size
    faults = (
        (unknown, f"weight-only quantisation does not support {', '.join(unknown)}", f"use {', '.join(WEIGHT_INPUT)}"),
        (
            size < _MIN_BLOCK or size & (size - 1),
            f"a block of {size} weights is not possible",
            "use 16, 32, 64, 128 or 256",
        ),
        (
            options.algorithm == "hqq" and options.symmetric,
            "HQQ has no symmetric form: it optimises zero points",
            "remove `symmetric`, or use algorithm `rtn`",
        ),
        (
            options.algorithm == "hqq" and options.bits != _FOUR_BITS,
            "ONNX Runtime has no kernel for 8-bit weights with the fractional zero points of HQQ",
            "use algorithm `rtn`: 8-bit weights lose almost no accuracy",
        ),
        (
            options.algorithm == "gptq" and options.bits != _FOUR_BITS,
            f"GPTQ supports 4-bit weights, not {options.bits}-bit ones",
            "use algorithm `rtn` or `hqq` for 8 bits",
        ),
        (
            options.algorithm == "gptq" and not has_samples,
            "GPTQ requires samples",
            "give real inputs (`--calibration`), or use algorithm `hqq`, which requires none",
        ),
        (
            "Gather" in options.operators and (options.algorithm != "rtn" or options.bits != _FOUR_BITS),
            "embedding tables (Gather) can be quantised only to 4 bits, by round-to-nearest",
            "remove Gather from `operators`",
        ),
        (
            "Gather" in options.operators and opset < _FOUR_BIT_OPSET,
            f"embedding tables (Gather) become 4-bit tensors, which require opset 21, and the model has opset {opset}",
            "export the model with opset 21, or remove Gather from `operators`",
        ),
    )
    for wrong, message, hint in faults:
        if wrong:
            raise StageError(message, hint=hint)


def _nothing(model: ModelProto, targets: Targets, options: Options) -> StageError:
    counts = count_operators(model)
    details = tuple(f"{count} left: {_REASONS[reason]}" for reason, count in sorted(targets.left.items()))
    if _ALREADY.intersection(counts):
        return StageError("the model's weights are quantised already", details=details, hint="give the float model")
    others = ", ".join(f"{count} {name}" for name, count in counts.items() if name in ("Conv", "Gemm"))
    return StageError(
        f"the model has no weight to quantise: no {' or '.join(options.operators)} with a constant matrix",
        details=details + ((f"it has {others}",) if others else ()),
        hint="for convolutions use dynamic or static quantisation; Gemm can be named in `operators`",
    )


_REASONS: Final[Mapping[str, str]] = {
    "excluded": "excluded by an option",
    "computed": "the weight is computed, not constant",
    "shape": "the weight is not a matrix",
    "type": "the weight is not in floating point",
    "odd blocks": "a row has an odd number of blocks, which the reference's GPTQ packs wrongly (`symmetric` can help)",
}


def _weight_bytes(model: ModelProto) -> int:
    sizes = {tensor.name: tensor_bytes(tensor) for graph in iterate_graphs(model) for tensor in graph.initializer}
    read = {
        node.input[place]
        for node in iterate_nodes(model)
        for place in _QUANTIZED.get(node.op_type, ())
        if place < len(node.input)
    }
    return sum(sizes.get(name, 0) for name in read)


def _notes(model: ModelProto, options: Options) -> tuple[Note, ...]:
    others = count_operators(model).get("Gemm", 0)
    if not others or "Gemm" in options.operators:
        return ()
    return (Note(text=f"{others} Gemm keep their weights; add Gemm to `operators` to quantise them as well"),)
