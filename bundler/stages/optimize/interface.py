"""The model keeps its inputs and outputs; weights that an old format listed as inputs become plain weights."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from onnx import ModelProto

from bundler.model.errors import StageError
from bundler.model.signature import Signature
from bundler.workbench.signatures import LISTED_INITIALIZERS_END, model_signature

_SEVERED: Final = "its inputs or outputs changed"


def has_listed_initializers(model: ModelProto) -> bool:
    """Whether the model is of an IR version that asked every initializer to stand among the inputs."""
    names = {tensor.name for tensor in model.graph.initializer}
    return model.ir_version < LISTED_INITIALIZERS_END and any(item.name in names for item in model.graph.input)


def unlist_initializers(path: Path) -> bytes:
    """The model at `path`, as bytes, in the first IR version that lets weights be weights alone.

    Otherwise the runtime could fold none of them, and would leave inputs behind for those that it merges.
    """
    model: ModelProto = ModelProto.FromString(path.read_bytes())
    names = {tensor.name for tensor in model.graph.initializer}
    for index in reversed(range(len(model.graph.input))):
        if model.graph.input[index].name in names:
            del model.graph.input[index]
    model.ir_version = LISTED_INITIALIZERS_END
    return bytes(model.SerializeToString())


def check_interface(before: ModelProto, after: ModelProto) -> None:
    """Names, kinds and element types of what a caller gives and gets. Raises `StageError`."""
    old, new = (_outline(model_signature(model)) for model in (before, after))
    if old != new:
        details = (f"before: {old}", f"after: {new}")
        raise StageError(f"the optimised model cannot be used: {_SEVERED}", details=details)


def _outline(signature: Signature) -> tuple[tuple[tuple[str, str, str | None], ...], ...]:
    ports = (signature.inputs, signature.outputs)
    return tuple(tuple((port.name, port.type.kind, port.type.element_type) for port in side) for side in ports)
