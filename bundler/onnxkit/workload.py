"""Count the costs of one run of a model from its graph, without a clock: the same on every machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from typing import Final

from onnx import ModelProto, NodeProto

from bundler.onnxkit.inference import infer_shapes
from bundler.onnxkit.structure import iterate_graphs

Shape = tuple[int, ...]

_CONVOLUTIONS: Final = frozenset({"Conv", "FusedConv", "ConvInteger", "ConvTranspose"})
_PRODUCTS: Final = frozenset({"MatMul", "Gemm", "FusedMatMul", "MatMulInteger", "FusedGemm"})
_RECURRENT: Final = frozenset({"LSTM", "GRU", "RNN"})
_QUANTIZED: Final = {"QLinearConv": 3, "QLinearMatMul": 3, "QGemm": 3}
"""Operators whose second factor is another input than the second."""
_MATRIX: Final = 2


def count_multiplications(structure: ModelProto, shapes: Mapping[str, Shape]) -> int:
    """Multiplications of one run on inputs of these shapes, by the operators that have most of them.

    Where shape inference fails, a weight counts once for each element of the largest input that holds
    positions (token ids, frames). Loop bodies count once.
    """
    inferred = _infer(structure, shapes)
    known = _known_shapes(inferred)
    rows = max((_positions(shape) for shape in shapes.values()), default=1)
    return sum(_count_node(node, known, rows) for graph in iterate_graphs(inferred) for node in graph.node)


def _infer(structure: ModelProto, shapes: Mapping[str, Shape]) -> ModelProto:
    model = deepcopy(structure)
    for info in model.graph.input:
        if info.name in shapes and info.type.HasField("tensor_type"):
            del info.type.tensor_type.shape.dim[:]
            for size in shapes[info.name]:
                info.type.tensor_type.shape.dim.add(dim_value=size)
    try:
        inferred = infer_shapes(model, data_prop=True)
    except Exception:  # noqa: BLE001 - its errors for an unsupported graph are not documented
        return model
    return inferred


def _known_shapes(model: ModelProto) -> dict[str, Shape]:
    known: dict[str, Shape] = {}
    for graph in iterate_graphs(model):
        for info in (*graph.input, *graph.output, *graph.value_info):
            dims = info.type.tensor_type.shape.dim
            if info.type.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in dims):
                known[info.name] = tuple(dim.dim_value for dim in dims)
        known.update({tensor.name: tuple(tensor.dims) for tensor in graph.initializer})
    return known


def _positions(shape: Shape) -> int:
    """The first two of [batch, length, features]; all of token ids."""
    return math.prod(shape if len(shape) <= _MATRIX else shape[:-1])


def _count_node(node: NodeProto, known: Mapping[str, Shape], rows: int) -> int:
    place = _QUANTIZED.get(node.op_type, 1)
    weight = known.get(node.input[place]) if len(node.input) > place else None
    if weight is None:
        return 0
    if node.op_type in _CONVOLUTIONS or node.op_type == "QLinearConv":
        return math.prod(weight) * _spatial(node, known)
    if node.op_type in _PRODUCTS or node.op_type in _QUANTIZED:
        return _count_product(known.get(node.output[0]), weight, rows)
    if node.op_type in _RECURRENT:
        steps = known.get(node.input[0])
        return 2 * math.prod(weight) * (math.prod(steps[:-1]) if steps else rows)
    return 0


def _spatial(node: NodeProto, known: Mapping[str, Shape]) -> int:
    """How often the kernel is applied: the places of the output, or of a transposed convolution's input."""
    shape = known.get(node.input[0] if node.op_type == "ConvTranspose" else node.output[0])
    return shape[0] * math.prod(shape[2:]) if shape else 1


def _count_product(output: Shape | None, weight: Shape, rows: int) -> int:
    if output is None or not output or len(weight) < _MATRIX:
        return math.prod(weight) * rows
    return math.prod(output) * (math.prod(weight[-2:]) // max(output[-1], 1))
