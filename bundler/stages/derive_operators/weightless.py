"""A model whose large weights are inputs: the same operators and types in a few kilobytes."""

from __future__ import annotations

from pathlib import Path

from onnx import TensorProto, helper

from bundler.onnxkit.canonical.tensor_data import DataFolders, embed_data
from bundler.onnxkit.structure import iterate_tensors, keep_only, read_structure


def read_weightless(source: Path) -> bytes:
    """The model at `source`, as bytes, with every initializer of its main graph over 4 KiB turned into an input."""
    model = read_structure(source, link=True)
    graph, listed = model.graph, {value.name for value in model.graph.input}
    for tensor in reversed(graph.initializer):
        if tensor.data_location == TensorProto.EXTERNAL and tensor.name not in listed:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    keep_only(graph.initializer, lambda tensor: tensor.data_location != TensorProto.EXTERNAL)
    folders = DataFolders(source, source.parent)
    for tensor in iterate_tensors(model):
        if tensor.data_location == TensorProto.EXTERNAL:
            embed_data(tensor, folders)
    return bytes(model.SerializeToString())
