"""Infer shapes as the reference does, without copies of weights and without files in the current folder."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import onnx
from onnx import ModelProto, ValueInfoProto
from onnxruntime.quantization.quant_utils import add_infer_metadata

from bundler.onnxkit.inference import infer_shapes
from bundler.onnxkit.structure import iterate_graphs, read_structure


def load_with_shapes(path: Path) -> ModelProto:
    """The whole model with all shapes that ONNX infers: the result of the reference's `load_model_with_shape_infer`.

    That function writes the model once more. Shapes depend on small tensors only, so the structure is enough.
    """
    model = onnx.load(path)
    inferred = infer_structure(path)
    for own, other in zip(iterate_graphs(model), iterate_graphs(inferred), strict=True):
        for field in ("value_info", "input", "output"):
            own.ClearField(field)
            getattr(own, field).extend(getattr(other, field))
    add_infer_metadata(model)
    return model


def infer_structure(path: Path) -> ModelProto:
    """The model at `path` without its large weights, with all shapes that ONNX infers."""
    structure = read_structure(path)
    return infer_shapes(structure)


def knows_types(model: ModelProto, operators: Collection[str]) -> bool:
    """Whether every tensor around nodes of these operators has an element type.

    Quantisers and calibrators require no more of activations; a tensor without a type is skipped silently.
    """
    graph = model.graph
    known = {item.name for item in (*graph.value_info, *graph.input, *graph.output) if _has_type(item)}
    known |= {item.name for item in graph.initializer} | {""}
    return all(
        known.issuperset(node.input) and known.issuperset(node.output)
        for node in graph.node
        if node.op_type in operators
    )


def _has_type(item: ValueInfoProto) -> bool:
    if not item.type.HasField("tensor_type"):
        return item.type.WhichOneof("value") is not None
    return bool(item.type.tensor_type.elem_type)


def infer_symbolically(model: ModelProto, *, merge: bool) -> ModelProto:
    """As the reference's `SymbolicShapeInference.infer_shapes`, which on failure writes a file. Raises its errors."""
    # sympy takes half a second to import
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference  # noqa: PLC0415

    inference = SymbolicShapeInference(int_max=2**31 - 1, auto_merge=merge, guess_output_rank=False, verbose=0)
    inference._preprocess(model)  # noqa: SLF001 - see above
    complete = False
    while inference.run_:
        complete = inference._infer_impl()  # noqa: SLF001
    inference._update_output_from_vi()  # noqa: SLF001
    if not complete:
        msg = "symbolic shapes cannot be inferred"
        raise ValueError(msg)
    inferred: ModelProto = inference.out_mp_
    return inferred
