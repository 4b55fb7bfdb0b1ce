"""Convert a model to the form that NNCF requires: in memory, opset 13 or later, every node with a unique name."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

import onnx
from google.protobuf.message import EncodeError
from onnx import GraphProto, ModelProto, version_converter

from bundler.model.errors import ModelError, StageError
from bundler.onnxkit.node_order import sort_model
from bundler.onnxkit.sessions import SessionSettings, clean_message, save_through_session
from bundler.onnxkit.signatures import unlist_initializers
from bundler.onnxkit.structure import (
    count_operators,
    iterate_nodes,
    iterate_tensors,
    keep_only,
    standard_opset,
    tensor_bytes,
)
from bundler.stages.quantize_nncf.scope import check_exclusions
from bundler.stages.quantize_nncf.spec import Options

MIN_OPSET: Final = 13
"""The first opset in which `QuantizeLinear` has scales per channel."""
_MIN_IR: Final = 7
"""The IR version of that opset."""
_LIMIT: Final = 2**31 - 1
"""Limit in bytes of one protobuf message, in which NNCF passes the model to ONNX Runtime."""
_TURNS_MATMUL_TO_GEMM: Final = "MatMulAddFusion"
"""Disabled when the user excludes nodes or operators: MatMul would become Gemm and be quantised."""
_STANDARD: Final = ("", "ai.onnx")
_QUANTIZED: Final = ("Quantize", "Dequantize", "DynamicQuantize", "QLinear", "QAttention", "QGemm", "QOrdered")
_INTEGER: Final = frozenset({"ConvInteger", "MatMulInteger", "MatMulNBits", "MatMulIntegerToFloat", "MatMulBnb4"})


def check_input(structure: ModelProto) -> None:
    """Reject what NNCF does not support, before any weight is read. Raises `StageError`, `ModelError`."""
    operators = count_operators(structure)
    found = sorted(name for name in operators if is_quantized(name.rpartition(".")[2]))
    if found:
        hint = "give the original float model, or keep the precision (precision.method = none)"
        raise StageError("the model is quantised already", details=(f"it has {', '.join(found)}",), hint=hint)
    if sum(map(tensor_bytes, iterate_tensors(structure))) > _LIMIT:
        hint = "weights-8bit and weights-4bit support larger ones: --set precision.method=weights-8bit"
        raise StageError("NNCF does not support models with more than 2 GB of weights", hint=hint)
    if not any(opset.domain in _STANDARD for opset in structure.opset_import):
        raise ModelError("the model does not import the standard ONNX opset")


def is_quantized(operator: str) -> bool:
    """Whether an operator (without its domain) computes on quantised values."""
    return operator.startswith(_QUANTIZED) or operator in _INTEGER


def prepare_model(source: Path, scratch: Path, options: Options) -> ModelProto:
    """The model with all its weights, ready for NNCF. Writes only below `scratch`. Raises `StageError`."""
    model = onnx.load(source)
    sort_model(model)
    name_nodes(model.graph)
    unlist_initializers(model)  # NNCF would use them as model inputs
    model = raise_opset(model, allowed=options.raise_opset)
    if options.preprocess:
        model = _fold(model, scratch, options)
        name_nodes(model.graph)
    _import_standard_first(model)
    return model


def raise_opset(model: ModelProto, *, allowed: bool) -> ModelProto:
    """The model at opset 13 or later. Raises `StageError` if it is older and may not or cannot be converted."""
    version = standard_opset(model)
    if version >= MIN_OPSET:
        return model
    if not allowed:
        hint = "allow the conversion (`raise_opset`), or export it again with a newer opset"
        raise StageError(f"the model has opset {version}, and per-channel quantisation requires {MIN_OPSET}", hint=hint)
    try:
        raised = version_converter.convert_version(model, MIN_OPSET)
    except (version_converter.ConvertError, RuntimeError, ValueError, EncodeError) as cause:
        raise StageError(
            f"the model has opset {version}, and cannot be converted to {MIN_OPSET}, which quantisation requires",
            details=(clean_message(cause),),
            hint=f"export it again with opset {MIN_OPSET} or later",
        ) from cause
    raised.ir_version = max(raised.ir_version, _MIN_IR)
    return raised


def _fold(model: ModelProto, scratch: Path, options: Options) -> ModelProto:
    settings = SessionSettings(
        session={"graph_optimization_level": "basic", "enable_cpu_mem_arena": False},
        session_config={"session.disable_prepacking": "1"},
        disabled_optimizers=(_TURNS_MATMUL_TO_GEMM,) if options.exclude_nodes or options.exclude_operators else (),
    )
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        saved = Path(folder) / "basic.onnx"
        save_through_session(model.SerializeToString(), saved, settings)
        return onnx.load(saved)


def find_excluded(structure: ModelProto, options: Options) -> tuple[str, ...]:
    """The names, after `name_nodes`, of all nodes with an excluded name. Raises `UsageError` for an unknown one."""
    old = [node.name for node in structure.graph.node]
    name_nodes(structure.graph)
    named = [(before, node.name) for before, node in zip(old, structure.graph.node, strict=True)]
    known = {name for pair in named for name in pair if name}
    check_exclusions(known, structure.graph, options.exclude_nodes, options.exclude_operators)
    return tuple(new for before, new in named if {before, new} & set(options.exclude_nodes))


def name_nodes(graph: GraphProto) -> None:
    """Give every node a unique name, which NNCF requires. Unnamed nodes get NNCF's own names."""
    taken = {node.name for node in graph.node}
    seen: Counter[str] = Counter()
    for position, node in enumerate(graph.node):
        stem = node.name or f"{node.op_type}_nncf_{position}"
        seen[stem] += 1
        if node.name and seen[stem] == 1:
            continue
        name = stem
        while name in taken:
            name = f"{stem}_{seen[stem]}"
            seen[stem] += 1
        node.name = name
        taken.add(name)


def _import_standard_first(model: ModelProto) -> None:
    """NNCF reads the opset from the first import, whatever its domain."""
    used = {node.domain for node in iterate_nodes(model)}
    keep_only(model.opset_import, lambda opset: opset.domain in _STANDARD or opset.domain in used)
    model.opset_import.sort(key=lambda opset: (opset.domain not in _STANDARD, opset.domain))
