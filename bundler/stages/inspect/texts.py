"""Reject names that are not text, or too long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from bundler.model.errors import ModelError
from bundler.model.facts import MAX_METADATA_BYTES, metadata_bytes
from bundler.onnxkit.structure import iterate_graphs, iterate_nodes, iterate_tensors

MAX_NAME: Final = 16_384
"""Maximum length of a name. Exporters join the names of nested modules: the longest of 121 models of public packages
has 369 characters (basic-pitch's `nmp.onnx`), the longest key of metadata 23.
"""
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


def read_metadata(model: ModelProto) -> dict[str, str]:
    """The model's metadata. Raises `ModelError` where they are too long in sum, not UTF-8, or have a key twice: some
    readers take its first value and others its last.
    """
    entries = [(item.key, item.value) for item in model.metadata_props]
    for key, value in entries:
        if isinstance(value, bytes):  # protobuf returns a string field that is not UTF-8 as bytes
            raise _refuse_metadata("a value of the model's metadata is not UTF-8", f"the key is {key[:_MAX_SHOWN]!a}")
    for key, count in Counter(key for key, _ in entries).items():
        if count > 1:
            raise _refuse_metadata("the model's metadata have a duplicate key", f"the key is {key[:_MAX_SHOWN]!a}")
    size = metadata_bytes(dict(entries))
    if size > MAX_METADATA_BYTES:
        raise _refuse_metadata(
            f"the model's metadata have {size:,} bytes, and a bundle carries at most {MAX_METADATA_BYTES:,}",
            f"the longest value is that of {max(entries, key=lambda entry: len(entry[1]))[0][:_MAX_SHOWN]!a}",
        )
    return dict(entries)


def _refuse_metadata(message: str, detail: str) -> ModelError:
    hint = "correct `metadata_props` of the model, and save it again"
    return ModelError(message, details=(detail,), hint=hint)


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
        yield "a key of the model's metadata", item.key


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
