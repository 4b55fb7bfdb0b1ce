"""Reject names that are not text, or too long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from bundler.model.errors import ModelError
from bundler.onnxkit.structure import iterate_graphs, iterate_nodes, iterate_tensors

MAX_NAME: Final = 16_384
"""Maximum length of a name in bytes. Exporters join the names of nested modules, up to some hundred."""
_MAX_SHOWN: Final = 60


def check_names(model: ModelProto) -> None:
    """Raise `ModelError` for a name that is too long, or not UTF-8, which protobuf returns as bytes."""
    for what, name in _names(model):
        if isinstance(name, bytes):
            hint = "give it another name and export the model again"
            details = (ascii(name[:_MAX_SHOWN])[1:],)
            raise ModelError(f"{what} is not UTF-8, which the ONNX format requires", details=details, hint=hint)
        if len(name) > MAX_NAME:
            hint = "give it a shorter name and export the model again"
            details = (f"it begins with {name[:_MAX_SHOWN]!a}",)
            raise ModelError(f"{what} is longer than {MAX_NAME:,} characters", details=details, hint=hint)


def _names(model: ModelProto) -> Iterator[tuple[str, Any]]:
    """Each name with a description of what it names, for an error."""
    for graph in iterate_graphs(model):
        yield from _graph_names(graph)
    for node in iterate_nodes(model):
        yield from _node_names(node)
    for tensor in iterate_tensors(model):
        yield "the name of a tensor", tensor.name
        for entry in tensor.external_data:
            yield from _each("the place of external data", (entry.key, entry.value))
    for function in model.functions:
        yield from _function_names(function)
    yield from _each("the domain of an operator set", (item.domain for item in model.opset_import))
    for item in model.metadata_props:
        yield from _each("a property of the model", (item.key, item.value))


def _each(what: str, names: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    return ((what, name) for name in names)


def _graph_names(graph: GraphProto) -> Iterator[tuple[str, Any]]:
    yield "the name of a graph", graph.name
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield "the name of a value", value.name
        yield from _each("the name of a dimension", (dim.dim_param for dim in value.type.tensor_type.shape.dim))
    for annotation in graph.quantization_annotation:
        yield "the name of a tensor", annotation.tensor_name


def _node_names(node: NodeProto) -> Iterator[tuple[str, Any]]:
    yield "the name of a node", node.name
    yield from _each("the operator of a node", (node.op_type, node.domain))
    yield from _each("the name of a value", (*node.input, *node.output))
    for attribute in node.attribute:
        yield from _each("the name of an attribute", (attribute.name, attribute.ref_attr_name))


def _function_names(function: FunctionProto) -> Iterator[tuple[str, Any]]:
    yield from _each("the name of a function", (function.name, function.domain))
    yield from _each("the name of a value", (*function.input, *function.output))
    yield from _each("the name of an attribute", function.attribute)
    yield from _each("the domain of an operator set", (item.domain for item in function.opset_import))
