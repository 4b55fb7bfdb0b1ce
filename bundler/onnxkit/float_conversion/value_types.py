"""Find the 32-bit float values of a graph: without them, the converter writes a model that does not load."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

import onnx
import onnx.inliner
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from bundler.onnxkit.elements import element_of_runtime
from bundler.onnxkit.inference import infer_shapes
from bundler.onnxkit.linked_models import LinkedModel, open_structure
from bundler.onnxkit.sessions import REFERENCE
from bundler.onnxkit.structure import iterate_graphs


def infer_types(linked: LinkedModel) -> LinkedModel:
    """The model with its functions inlined and with the types of its values written into it.

    ONNX's own inference does not support the runtime's operators; the runtime infers those. Raises `StageError`.
    """
    model = linked.model
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    inferred = LinkedModel(infer_shapes(model), linked.folders, linked.external)
    graph = inferred.model.graph
    known = {info.name for info in (*graph.value_info, *graph.output) if info.type.WhichOneof("value")}
    unknown = [name for node in graph.node for name in node.output if name and name not in known]
    if unknown:
        graph.value_info.extend(_infer_with_runtime(inferred, unknown))
    return inferred


def _infer_with_runtime(linked: LinkedModel, names: list[str]) -> Iterator[ValueInfoProto]:
    probe = deepcopy(linked.model)
    probe.graph.output.extend(ValueInfoProto(name=name) for name in names)
    session = open_structure(probe, linked.folders.source, REFERENCE)
    for item in session.get_outputs():
        if item.name in names and item.type.startswith("tensor("):
            number = element_of_runtime(item.type.removeprefix("tensor(").removesuffix(")")).onnx
            yield helper.make_tensor_value_info(item.name, number, None)


def float_values(model: ModelProto) -> set[str]:
    """Names of all values and weights of the main graph that are 32-bit floats."""
    graph = model.graph
    infos = (*graph.input, *graph.output, *graph.value_info)
    values = {info.name for info in infos if info.type.tensor_type.elem_type == TensorProto.FLOAT}
    return values | {tensor.name for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT}


def has_type(model: ModelProto, number: int) -> bool:
    """Whether any weight or value has the element type `number`."""
    infos = (info for graph in iterate_graphs(model) for info in (*graph.input, *graph.output, *graph.value_info))
    tensors = (tensor for graph in iterate_graphs(model) for tensor in graph.initializer)
    return any(info.type.tensor_type.elem_type == number for info in infos) or any(
        tensor.data_type == number for tensor in tensors
    )
