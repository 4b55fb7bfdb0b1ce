"""The model keeps its inputs and outputs; weights that an old format listed as inputs become plain weights."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from onnx import ModelProto

from bundler.model.errors import StageError
from bundler.model.signature import Signature
from bundler.workbench.canonical.tensor_data import DataFolders, embed_non_initializers
from bundler.workbench.signatures import LISTED_INITIALIZERS_END, model_signature
from bundler.workbench.structure import read_structure

_SEVERED: Final = "its inputs or outputs changed"


def has_listed_initializers(model: ModelProto) -> bool:
    """Whether the model is of an IR version that asked every initializer to stand among the inputs."""
    names = {tensor.name for tensor in model.graph.initializer}
    return model.ir_version < LISTED_INITIALIZERS_END and any(item.name in names for item in model.graph.input)


def link_model(path: Path) -> bytes:
    """The model at `path`, as bytes, with its weights left in that file and none of them listed among the inputs.

    While an old format lists them there, the runtime can fold none, and leaves inputs behind for those that it merges.
    """
    model = read_structure(path, link=True)
    if has_listed_initializers(model):
        names = {tensor.name for tensor in model.graph.initializer}
        for index in reversed(range(len(model.graph.input))):
            if model.graph.input[index].name in names:
                del model.graph.input[index]
        model.ir_version = LISTED_INITIALIZERS_END
    embed_non_initializers(model, DataFolders(path, path.parent))
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
