"""Weights that a model generates instead of storing them: networks published for their structure only."""

from __future__ import annotations

import math

from onnx import ModelProto, NodeProto, TensorProto

from bundler.onnxkit.elements import element_of_onnx, storage_bytes
from bundler.onnxkit.structure import iterate_nodes, iterate_tensors, read_constant


def count_generated_bytes(model: ModelProto) -> int:
    """Bytes that constant folding would add: the outputs of ConstantOfShape with constant shapes."""
    shapes = {tensor.name: tensor for tensor in iterate_tensors(model) if tensor.data_type == TensorProto.INT64}
    for node in iterate_nodes(model):
        if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
            shapes[node.output[0]] = node.attribute[0].t
    return sum(_made_by(node, shapes) for node in iterate_nodes(model) if node.op_type == "ConstantOfShape")


def _made_by(node: NodeProto, shapes: dict[str, TensorProto]) -> int:
    shape = shapes.get(node.input[0]) if node.input else None
    sizes = None if shape is None else read_constant(shape)
    if sizes is None:
        return 0
    kinds = [attribute.t.data_type for attribute in node.attribute if attribute.name == "value"]
    element = element_of_onnx(kinds[0] if kinds else TensorProto.FLOAT)
    return storage_bytes(element, math.prod(max(0, int(size)) for size in sizes.reshape(-1)))
