"""Convert weights that an old format listed as inputs to plain weights."""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto

from bundler.onnxkit.canonical.tensor_data import DataFolders, embed_nested
from bundler.onnxkit.signatures import LISTED_INITIALIZERS_END, unlist_initializers
from bundler.onnxkit.structure import read_structure


def has_listed_initializers(model: ModelProto) -> bool:
    """Whether the model's IR version required every initializer to be listed as an input."""
    names = {tensor.name for tensor in model.graph.initializer}
    return model.ir_version < LISTED_INITIALIZERS_END and any(item.name in names for item in model.graph.input)


def link_model(path: Path) -> bytes:
    """The model at `path`, as bytes, with its weights left in that file and none of them listed as an input.

    The runtime cannot fold weights that are listed as inputs, and leaves inputs behind for those that it merges.
    """
    model = read_structure(path, link=True)
    if has_listed_initializers(model):
        unlist_initializers(model)
    embed_nested(model, DataFolders(path, path.parent))
    return bytes(model.SerializeToString())
