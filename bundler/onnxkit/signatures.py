"""A model's inputs and outputs as bundler's own types."""

from __future__ import annotations

from onnx import ModelProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto

from bundler.model.errors import StageError
from bundler.model.signature import Dimension, Port, Signature, ValueType
from bundler.onnxkit.elements import element_of_onnx
from bundler.onnxkit.structure import keep_only

LISTED_INITIALIZERS_END = 4
"""IR version from which an initializer that is also an input is a default value; before, every one had to be."""


def model_signature(model: ModelProto) -> Signature:
    """The model's inputs and outputs. Raises `ModelError` for an unknown element type.

    Before IR version 4 all weights were listed among the inputs: those are omitted. Since then an initializer among
    the inputs is a default that the caller may override: those are optional.
    """
    defaults = {tensor.name for tensor in model.graph.initializer}
    old = model.ir_version < LISTED_INITIALIZERS_END
    inputs = tuple(
        _port(info, optional=info.name in defaults) for info in model.graph.input if not (old and info.name in defaults)
    )
    return Signature(inputs=inputs, outputs=tuple(_port(info) for info in model.graph.output))


def unlist_initializers(model: ModelProto) -> None:
    """Remove the initializers that a format before IR version 4 listed as inputs, and raise it to that version."""
    if model.ir_version >= LISTED_INITIALIZERS_END:
        return
    names = {tensor.name for tensor in model.graph.initializer}
    keep_only(model.graph.input, lambda item: item.name not in names)
    model.ir_version = LISTED_INITIALIZERS_END


def _port(info: ValueInfoProto, *, optional: bool = False) -> Port:
    return Port(name=info.name, type=value_type(info.type), optional=optional)


def value_type(proto: TypeProto) -> ValueType:
    """One ONNX type. An output without a type (which the format allows) is a tensor of unknown type and shape."""
    which = proto.WhichOneof("value")
    if which == "sequence_type":
        return ValueType(kind="sequence", element=value_type(proto.sequence_type.elem_type))
    if which == "optional_type":
        return ValueType(kind="optional", element=value_type(proto.optional_type.elem_type))
    if which == "map_type":
        key = element_of_onnx(proto.map_type.key_type).name
        return ValueType(kind="map", key_type=key, element=value_type(proto.map_type.value_type))
    if which == "sparse_tensor_type":
        return _tensor_type(proto.sparse_tensor_type, sparse=True)
    return _tensor_type(proto.tensor_type, sparse=False)


def _tensor_type(proto: TypeProto.Tensor | TypeProto.SparseTensor, *, sparse: bool) -> ValueType:
    known = proto.elem_type != TensorProto.UNDEFINED
    return ValueType(
        kind="sparse_tensor" if sparse else "tensor",
        element_type=element_of_onnx(proto.elem_type).name if known else None,
        shape=tuple(map(_dimension, proto.shape.dim)) if proto.HasField("shape") else None,
    )


PLACEHOLDERS = frozenset({"", "?", "*", "-1", "None", "none", "unk"})
"""Exporters' names for an unknown size. As names they would tie unrelated sizes together."""


def _dimension(dim: TensorShapeProto.Dimension) -> Dimension:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return None if dim.dim_param in PLACEHOLDERS else dim.dim_param


def check_interface(before: ModelProto, after: ModelProto) -> None:
    """Compare names, kinds and element types of inputs and outputs. Raises `StageError`."""
    old, new = (_outline(model_signature(model)) for model in (before, after))
    if old != new:
        details = (f"before: {old}", f"after: {new}")
        hint = "a tool folded or lost an input with a default value: remove the initializers of such inputs"
        raise StageError("the model's inputs or outputs changed", details=details, hint=hint)


def _outline(signature: Signature) -> tuple[tuple[tuple[str, str], ...], ...]:
    ports = (signature.inputs, signature.outputs)
    return tuple(tuple((port.name, _kind(port.type)) for port in side) for side in ports)


def _kind(found: ValueType) -> str:
    """A type without its shapes: `sequence(map(int64, float32))`."""
    if found.element is None:
        return f"{found.kind}({found.element_type or '?'})"
    key = f"{found.key_type}, " if found.key_type else ""
    return f"{found.kind}({key}{_kind(found.element)})"
