"""Prepare a model for the runtime's optimiser: plain weights where an old format listed them as inputs, flat graphs."""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto

from bundler.onnxkit.canonical.tensor_data import DataFolders, embed_nested
from bundler.onnxkit.decided_branches import inline_decided_branches
from bundler.onnxkit.signatures import LISTED_INITIALIZERS_END, unlist_initializers
from bundler.onnxkit.structure import read_structure


def has_listed_initializers(model: ModelProto) -> bool:
    """Whether the model's IR version required every initializer to be listed as an input."""
    names = {tensor.name for tensor in model.graph.initializer}
    return model.ir_version < LISTED_INITIALIZERS_END and any(item.name in names for item in model.graph.input)


def link_model(path: Path) -> bytes:
    """The model at `path`, as bytes, with its weights left in that file, none of them listed as an input, and each
    decided condition replaced by its branch (the runtime, 1.27, fails where a branch that is not taken has another).

    The runtime cannot fold weights that are listed as inputs, and leaves inputs behind for those that it merges.
    """
    model = read_structure(path, link=True)
    if has_listed_initializers(model):
        unlist_initializers(model)
    inline_decided_branches(model)
    embed_nested(model, DataFolders(path, path.parent))
    return bytes(model.SerializeToString())
