"""Fix sizes in a model: named ones everywhere, others in inputs."""

from __future__ import annotations

from copy import deepcopy

import onnx
from onnx import ModelProto, TypeProto
from onnxruntime.tools.onnx_model_utils import make_dim_param_fixed

from bundler.model.fixing import Fixing
from bundler.model.shapes import FixedShape
from bundler.onnxkit.decided_branches import inline_decided_branches
from bundler.onnxkit.inference import infer_shapes
from bundler.onnxkit.size_folding import fold_sizes
from bundler.onnxkit.structure import iterate_graphs, lift_constants


def fix_model(model: ModelProto, fixing: Fixing) -> None:
    """Fix the sizes of `model`, and the sizes of outputs and conditions that follow. The shapes must fit its inputs."""
    for graph in iterate_graphs(model):
        for name, size in fixing.dimensions.items():
            make_dim_param_fixed(graph, name, size)
    for info in model.graph.input:
        if info.name in fixing.shapes:
            _fix_axes(info.type.tensor_type, fixing.shapes[info.name])
    _forget_placeholders(model)
    inline_decided_branches(model)
    _fix_outputs(model)


def _fix_axes(kind: TypeProto.Tensor, shape: FixedShape) -> None:
    """Done here because ONNX Runtime's own tool rejects a shape that has some fixed sizes already."""
    if not kind.HasField("shape"):
        for _ in shape:
            kind.shape.dim.add()
    for dimension, size in zip(kind.shape.dim, shape, strict=True):
        if size is not None:
            dimension.dim_value = size  # this removes a name: a dimension has one of the two


def _forget_placeholders(model: ModelProto) -> None:
    """Remove PaddlePaddle's -1 for an unknown size, which shape inference would use as a size."""
    for info in (*model.graph.input, *model.graph.value_info, *model.graph.output):
        for dimension in info.type.tensor_type.shape.dim if info.type.HasField("tensor_type") else ():
            if dimension.dim_value < 0:
                dimension.Clear()


def _fix_outputs(model: ModelProto) -> None:
    """Give outputs the sizes that now follow; outputs that inference cannot determine do not change."""
    try:
        inferred = infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return
    _adopt_outputs(model, inferred)
    if not _is_fixed(model):
        # Inference alone cannot follow sizes that are computed from the inputs' sizes.
        _adopt_outputs(model, fold_shapes(model))


def fold_shapes(model: ModelProto) -> ModelProto:
    """A copy with the shapes of its values, without the nodes that only compute sizes."""
    copy = deepcopy(model)
    for graph in iterate_graphs(copy):
        lift_constants(graph)
    return fold_sizes(copy)


def _is_fixed(model: ModelProto) -> bool:
    kinds = [output.type.tensor_type for output in model.graph.output if output.type.HasField("tensor_type")]
    return all(kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim) for kind in kinds)


def _adopt_outputs(model: ModelProto, inferred: ModelProto) -> None:
    for output, found in zip(model.graph.output, inferred.graph.output, strict=True):
        shape = found.type.tensor_type.shape
        if not output.type.HasField("tensor_type") or not found.type.tensor_type.HasField("shape"):
            continue
        if not output.type.tensor_type.HasField("shape"):
            output.type.tensor_type.shape.CopyFrom(shape)
        for dimension, known in zip(output.type.tensor_type.shape.dim, shape.dim, strict=False):
            if known.HasField("dim_value") and not dimension.HasField("dim_value"):
                dimension.dim_value = known.dim_value
