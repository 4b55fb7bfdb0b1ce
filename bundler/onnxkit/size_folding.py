"""Remove nodes that only compute sizes from a graph, as the runtime does before it assigns nodes to providers.

With fixed dimensions, a chain such as Shape, Gather, Unsqueeze, Concat is a constant, and the shapes after a Reshape
are known. Without this step the checker sees nodes that will be folded, and dynamic shapes that are fixed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from bundler.onnxkit.inference import infer_shapes
from bundler.onnxkit.structure import integer_attribute, keep_only, read_constant, subgraphs

_MAX_ROUNDS: Final = 32
_STANDARD: Final = ("", "ai.onnx")
_MAX_ELEMENTS: Final = 1024
_FOLDED: Final = frozenset(
    {"Gather", "Unsqueeze", "Squeeze", "Concat", "Slice", "Cast", "Add", "Sub", "Mul", "Div", "Mod", "Neg", "Min"}
    | {"Max", "Equal", "Greater", "Less", "Not", "And", "Or", "Where", "ReduceProd", "Identity", "Floor", "Ceil"}
    | {"Size", "Reshape", "Transpose", "ConstantOfShape"}
)
"""Operators that compute sizes, and whose result is not much larger than their inputs."""
_ERRORS: Final = (
    *(ValueError, TypeError, IndexError, KeyError, RuntimeError, AttributeError, NotImplementedError, ArithmeticError),
    onnx.shape_inference.InferenceError,
)
"""Errors of ONNX's reference for a node that it cannot compute: that node stays."""


def fold_sizes(model: ModelProto) -> ModelProto:
    """The model with the inferred shapes of its values, without the nodes that only compute sizes."""
    for _ in range(_MAX_ROUNDS):
        model = _infer_shapes(model)
        if not _fold_once(model):
            break
    return model


def fixed_values(model: ModelProto) -> frozenset[str]:
    """Names of the main graph's values with fixed shapes; the empty name is an omitted input."""
    infos = (*model.graph.input, *model.graph.value_info, *model.graph.output)
    fixed = {info.name for info in infos if _fixed_shape(info) is not None}
    return frozenset(fixed | {tensor.name for tensor in model.graph.initializer} | {""})


def _infer_shapes(model: ModelProto) -> ModelProto:
    # Declared shapes override inferred ones: a dimension that was unknown before the folding would stay unknown.
    untyped = {name for node in model.graph.node if node.domain not in _STANDARD for name in node.output}
    keep_only(model.graph.value_info, lambda info: info.name in untyped)
    try:
        inferred = infer_shapes(model, data_prop=True)
    except _ERRORS:
        return model
    return inferred


@dataclass(slots=True)
class _Known:
    """Small values that are known before a run, and fixed shapes, by name."""

    values: dict[str, np.ndarray[Any, Any]]
    shapes: dict[str, tuple[int, ...]]
    opsets: list[Any]

    def compute(self, node: NodeProto) -> np.ndarray[Any, Any] | None:
        if node.domain not in _STANDARD or len(node.output) != 1 or any(subgraphs(node)):
            return None
        if node.op_type == "Shape":
            return self._measure(node)
        if node.op_type not in _FOLDED or not all(name in self.values for name in node.input if name):
            return None
        feeds = {name: self.values[name] for name in node.input if name}
        if _result_size(node, list(feeds.values())) > _MAX_ELEMENTS:
            return None
        inputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in feeds]
        outputs = [helper.make_tensor_value_info(node.output[0], TensorProto.UNDEFINED, None)]
        single = helper.make_model(helper.make_graph([node], "one", inputs, outputs), opset_imports=self.opsets)
        try:
            results: Any = ReferenceEvaluator(single).run(None, feeds)
            result = np.asarray(results[0])
        except _ERRORS:
            return None
        return result if result.size <= _MAX_ELEMENTS else None

    def _measure(self, node: NodeProto) -> np.ndarray[Any, Any] | None:
        if not node.input or node.input[0] not in self.shapes:
            return None
        shape = self.shapes[node.input[0]]
        start, end = integer_attribute(node, "start"), integer_attribute(node, "end", len(shape))
        return np.array(shape[start:end], np.int64)


def _result_size(node: NodeProto, values: Sequence[np.ndarray[Any, Any]]) -> int:
    """The elements of a result that may be huge, else 0: small values along different axes are, together."""
    if node.op_type == "ConstantOfShape":
        return math.prod(values[0].tolist())
    try:
        return math.prod(np.broadcast_shapes(*(value.shape for value in values)))
    except ValueError:
        return 0


def _fold_once(model: ModelProto) -> int:
    """Turn the main graph's nodes with known values into initializers; returns their number."""
    graph = model.graph
    kept = {info.name for info in graph.output}
    infos = (*graph.input, *graph.value_info)
    known = _Known(
        dict(_small_weights(graph)),
        {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
        | {info.name: shape for info in infos if (shape := _fixed_shape(info)) is not None},
        list(model.opset_import),
    )
    folded = []
    for index, node in enumerate(graph.node):
        value = None if kept.intersection(node.output) else known.compute(node)
        if value is not None:
            known.values[node.output[0]] = value
            graph.initializer.append(numpy_helper.from_array(value, node.output[0]))
            folded.append(index)
    for index in reversed(folded):
        del graph.node[index]
    return len(folded)


def _small_weights(graph: GraphProto) -> Iterator[tuple[str, np.ndarray]]:
    for tensor in graph.initializer:
        values = read_constant(tensor) if _is_small(tensor) else None
        if values is not None:
            yield tensor.name, values


def _is_small(tensor: TensorProto) -> bool:
    """Whether a weight is loaded: the others were left in the file."""
    elements = int(np.prod(tensor.dims, dtype=np.float64))
    has_data = any(getattr(tensor, name) for name in ("raw_data", "int64_data", "int32_data", "float_data"))
    return (has_data or not elements) and elements <= _MAX_ELEMENTS and tensor.data_type != TensorProto.STRING


def _fixed_shape(info: onnx.ValueInfoProto) -> tuple[int, ...] | None:
    kind = info.type.tensor_type
    if not info.type.HasField("tensor_type") or not kind.HasField("shape"):
        return None
    if not all(dim.HasField("dim_value") and dim.dim_value > 0 for dim in kind.shape.dim):
        return None
    return tuple(dim.dim_value for dim in kind.shape.dim)
