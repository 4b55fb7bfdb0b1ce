"""Computes in float32 what a model computes in float64, for providers that lack it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from bundler.onnxkit.linked_models import LinkedModel, open_linked, write_linked
from bundler.onnxkit.structure import (
    free_prefix,
    iterate_graphs,
    iterate_nodes,
    iterate_tensors,
    rename_captures,
    subgraphs,
)

_TYPES: Final = frozenset({"to", "dtype", "output_datatype"})
"""Attributes that hold the type of a node's output."""
_GREATEST: Final = float(np.finfo(np.float32).max)


def narrow_doubles(source: Path, target: Path) -> Path | None:
    """Write the model at `source` to `target` with float32 in place of float64, and return `target`. Inputs and outputs
    keep their types, and optional inputs their defaults. Numbers out of the range of float32 become its greatest.

    None where a port holds more than one tensor: such values of float64 stay what they are.
    """
    linked = open_linked(source)
    model = linked.model
    ports = [*model.graph.input, *model.graph.output]
    if any(port.type.WhichOneof("value") != "tensor_type" for port in ports):
        return None
    inputs = {port.name for port in model.graph.input}
    defaults = {tensor.name for tensor in model.graph.initializer if tensor.name in inputs}
    for tensor in iterate_tensors(model):
        if tensor.data_type == TensorProto.DOUBLE and tensor.name not in defaults:
            _narrow(tensor, linked)
    for node in iterate_nodes(model):
        for attribute in node.attribute:
            if attribute.name in _TYPES and attribute.i == TensorProto.DOUBLE:
                attribute.i = TensorProto.FLOAT
    kept = {port.name for port in ports if _is_double(port)}
    for info in _inner_values(model):
        if _is_double(info):
            info.type.tensor_type.elem_type = TensorProto.FLOAT
    _cast_ports(model, kept)
    write_linked(linked, target)
    return target


def _narrow(tensor: TensorProto, linked: LinkedModel) -> None:
    values = linked.array(tensor)
    finite = np.where(np.isfinite(values), np.clip(values, -_GREATEST, _GREATEST), values)
    tensor.CopyFrom(numpy_helper.from_array(finite.astype(np.float32), tensor.name))


def _is_double(info: ValueInfoProto) -> bool:
    return info.type.tensor_type.elem_type == TensorProto.DOUBLE


def _inner_values(model: ModelProto) -> Iterator[ValueInfoProto]:
    for graph in iterate_graphs(model):
        yield from graph.value_info
        if graph is not model.graph:
            yield from (*graph.input, *graph.output)


def _cast_ports(model: ModelProto, kept: set[str]) -> None:
    """Put a cast behind each input and before each output of `kept`, the ports of float64."""
    graph, mark = model.graph, free_prefix(model, "single ")
    inputs = [port.name for port in graph.input if port.name in kept]
    outputs = [port.name for port in graph.output if port.name in kept and port.name not in inputs]
    _rename(graph, {name: f"{mark}{name}" for name in (*inputs, *outputs)})
    nodes = [
        *(helper.make_node("Cast", [name], [f"{mark}{name}"], to=TensorProto.FLOAT) for name in inputs),
        *graph.node,
        *(helper.make_node("Cast", [f"{mark}{name}"], [name], to=TensorProto.DOUBLE) for name in outputs),
    ]
    del graph.node[:]
    graph.node.extend(nodes)


def _rename(graph: GraphProto, names: dict[str, str]) -> None:
    inputs = {port.name for port in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in inputs:
            tensor.name = names.get(tensor.name, tensor.name)
    for node in graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = names.get(name, name)
        for place, name in enumerate(node.output):
            node.output[place] = names.get(name, name)
        for inner in subgraphs(node):
            rename_captures(inner, names)
