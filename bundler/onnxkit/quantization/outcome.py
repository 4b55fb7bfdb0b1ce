"""Describe a quantised model as facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from onnx import ModelProto, NodeProto
from onnxruntime.quantization.quant_utils import TENSOR_NAME_QUANT_SUFFIX

from bundler.onnxkit.quantization.selection import nothing_quantized
from bundler.onnxkit.signatures import check_interface
from bundler.onnxkit.structure import iterate_graphs, qualified_name, read_structure

QUANTIZE: Final = frozenset({"QuantizeLinear", "DynamicQuantizeLinear"})
DEQUANTIZE: Final = "DequantizeLinear"
_CONVERSIONS: Final = frozenset({DEQUANTIZE, "Cast"})


def describe_outcome(before: ModelProto, target: Path, *, qdq: bool) -> dict[str, Any]:
    """The facts of a quantised model. Raises `StageError` where nothing was quantised or the interface changed."""
    after = read_structure(target)
    check_interface(before, after)
    counts = Counter(qualified_name(node) for node in (_in_pairs(after) if qdq else _quantized_nodes(after)))
    if not counts:
        raise nothing_quantized(
            "the quantiser found no operator that it supports; it requires weights and known shapes"
        )
    graphs = list(iterate_graphs(after))
    weights = {item.name for graph in graphs for item in graph.initializer if _is_quantized(item.name)}
    return {
        "nodes_before": sum(len(graph.node) for graph in iterate_graphs(before)),
        "nodes_after": sum(len(graph.node) for graph in graphs),
        "quantized": dict(sorted(counts.items())),
        "tensors": {
            "activations": sum(node.op_type in QUANTIZE for graph in graphs for node in graph.node),
            "weights": len(weights),
        },
        "bytes": sum(path.stat().st_size for path in target.parent.iterdir() if path.is_file()),
    }


def _in_pairs(model: ModelProto) -> Iterator[NodeProto]:
    """Nodes between a DequantizeLinear and either narrow weights or a QuantizeLinear: those that a runtime fuses."""
    for graph in iterate_graphs(model):
        constants = {item.name for item in graph.initializer}
        restored = {node.output[0]: node.input[0] in constants for node in graph.node if node.op_type == DEQUANTIZE}
        reduced = {node.input[0] for node in graph.node if node.op_type in QUANTIZE}
        for node in graph.node:
            if node.op_type == DEQUANTIZE or node.op_type in QUANTIZE:
                continue
            sources = [restored[name] for name in node.input if name in restored]
            if sources and (any(sources) or any(name in reduced for name in node.output)):
                yield node


def _quantized_nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Nodes with quantised inputs."""
    for graph in iterate_graphs(model):
        for node in graph.node:
            if node.op_type not in _CONVERSIONS and any(map(_is_quantized, node.input)):
                yield node


def _is_quantized(name: str) -> bool:
    return name.endswith(TENSOR_NAME_QUANT_SUFFIX)
