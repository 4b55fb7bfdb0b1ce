"""Convert by the reference, `onnxruntime.transformers.float16`, without loading the model's weights."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from copy import deepcopy
from dataclasses import dataclass, field

from onnx import AttributeProto, ModelProto, TensorProto, ValueInfoProto, helper
from onnxruntime.transformers import float16 as reference

from bundler.model.errors import StageError
from bundler.onnxkit.float_conversion.casts import tidy_casts
from bundler.onnxkit.float_conversion.narrow import ONNX_TYPES, narrow
from bundler.onnxkit.linked_models import LinkedModel
from bundler.onnxkit.structure import iterate_graphs, iterate_nodes, iterate_tensors, lift_constants, tensor_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """Options of a conversion: `kind` is a key of `ONNX_TYPES`; `keep_io` keeps the types of inputs and outputs;
    `block_operators` and `block_nodes` stay in 32 bits (nodes by their names before the conversion).
    """

    kind: str
    keep_io: bool = True
    block_operators: frozenset[str] = frozenset(reference.DEFAULT_OP_BLOCK_LIST)
    block_nodes: frozenset[str] = frozenset()


@dataclass(slots=True)
class Converted:
    """The new model, the converted weights (names of the input model) with their former bytes, and for each the number
    of values that were out of range.
    """

    linked: LinkedModel
    weights: dict[str, int] = field(default_factory=dict)
    clamped: dict[str, int] = field(default_factory=dict)


def convert(linked: LinkedModel, conversion: Conversion) -> Converted:
    """A converted copy of a model with inferred types and unique node names. Raises `StageError`."""
    model = deepcopy(linked.model)
    before = [(tensor, _snapshot(tensor, name)) for tensor, name in _float_tensors(model)]
    count = len(model.graph.node)
    model = _convert_structure(model, conversion)
    if conversion.kind != "float16":
        _retarget(model, ONNX_TYPES[conversion.kind])
    tidy_casts(model, len(model.graph.node) - count)
    result = Converted(LinkedModel(model, linked.folders, linked.external))
    for tensor, original in before:
        if tensor.data_type != TensorProto.FLOAT:
            _fill(result, tensor, original, conversion.kind)
    return result


def _float_tensors(model: ModelProto) -> Iterator[tuple[TensorProto, str]]:
    """Every tensor of 32-bit floats, with the name of its value."""
    for graph in iterate_graphs(model):
        yield from ((tensor, tensor.name) for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT)
    for node in iterate_nodes(model):
        for item in node.attribute:
            for tensor in (item.t, *item.tensors) if item.type == AttributeProto.TENSOR else item.tensors:
                if tensor.data_type == TensorProto.FLOAT:
                    yield tensor, next((name for name in node.output if name), node.op_type)


def _snapshot(tensor: TensorProto, name: str) -> TensorProto:
    copy = deepcopy(tensor)
    copy.name = name
    return copy


def _convert_structure(model: ModelProto, conversion: Conversion) -> ModelProto:
    try:
        with _shapes_from_sizes():
            converted: ModelProto = reference.convert_float_to_float16(
                model,
                keep_io_types=conversion.keep_io,
                disable_shape_infer=True,
                op_block_list=sorted(conversion.block_operators),
                node_block_list=sorted(conversion.block_nodes),
            )
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError) as cause:
        details = (f"{type(cause).__name__}: {str(cause)[:300]}",)
        raise StageError("ONNX Runtime's float converter does not support this model", details=details) from cause
    return converted


@contextlib.contextmanager
def _shapes_from_sizes() -> Iterator[None]:
    """Inside this context, the reference reads a weight's shape without its values, which are not loaded."""
    before = reference.make_value_info_from_tensor

    def describe(tensor: TensorProto) -> ValueInfoProto:
        return helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))

    reference.make_value_info_from_tensor = describe
    try:
        yield
    finally:
        reference.make_value_info_from_tensor = before


def _retarget(model: ModelProto, number: int) -> None:
    """Replace the reference's only narrow type by another."""
    for graph in iterate_graphs(model):
        for info in (*graph.input, *graph.output, *graph.value_info):
            for kind in (info.type.tensor_type, info.type.sequence_type.elem_type.tensor_type):
                if kind.elem_type == TensorProto.FLOAT16:
                    kind.elem_type = number
    for node in iterate_nodes(model):
        for item in node.attribute:
            if item.name in ("to", "dtype") and item.type == AttributeProto.INT and item.i == TensorProto.FLOAT16:
                item.i = number
    for tensor in iterate_tensors(model):
        if tensor.data_type == TensorProto.FLOAT16:
            tensor.data_type = number


def _fill(result: Converted, tensor: TensorProto, original: TensorProto, kind: str) -> None:
    """Convert the tensor's original values."""
    data, clamped = narrow(result.linked.array(original), kind, original.name)
    for name in ("float_data", "int32_data", "external_data", "data_location"):
        tensor.ClearField(name)
    tensor.raw_data = data
    result.weights[original.name] = tensor_bytes(original)
    if clamped:
        result.clamped[original.name] = clamped


def store_narrow(linked: LinkedModel, kind: str, least: int, kept: Collection[str] = ()) -> Converted:
    """A copy in which weights of `least` bytes or more are stored in 16 bits and widened where they are read: all
    arithmetic stays in 32 bits. Weights named in `kept` stay. Raises `StageError` for a weight that is NaN.
    """
    model = deepcopy(linked.model)
    for graph in iterate_graphs(model):
        lift_constants(graph)
    result = Converted(LinkedModel(model, linked.folders, linked.external))
    formals = {info.name for graph in iterate_graphs(model) for info in graph.input}
    for graph in iterate_graphs(model):
        casts = []
        for tensor in graph.initializer:
            taken = tensor.name in kept or tensor.name in formals or tensor.data_type != TensorProto.FLOAT
            if taken or tensor_bytes(tensor) < least:
                continue
            _fill(result, tensor, _snapshot(tensor, tensor.name), kind)
            tensor.data_type = ONNX_TYPES[kind]
            name, tensor.name = tensor.name, f"{tensor.name}/{kind}"
            casts.append(helper.make_node("Cast", [tensor.name], [name], to=TensorProto.FLOAT, name=f"{name}/widen"))
        for cast in reversed(casts):
            graph.node.insert(0, cast)
    return result
