"""Change a model without loading its weights: they stay linked to their file until they are read.

Only the structure of a model of gigabytes is in memory; a stage reads the tensors that it replaces one at a time, and
the others are copied from file to file when the changed model is written.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, numpy_helper

from bundler.model.errors import StageError
from bundler.onnxkit.canonical.rewriting import rewrite_model
from bundler.onnxkit.canonical.tensor_data import PROTOBUF_LIMIT, DataFolders, embed_data, place_weights
from bundler.onnxkit.sessions import RUNTIME_ERRORS, SessionSettings, clean_message, session_options
from bundler.onnxkit.signatures import unlist_initializers
from bundler.onnxkit.structure import has_external_data, read_structure, tensor_bytes

_EMBEDDED_LIMIT: Final = 2**30
"""Bytes of weights above which they are stored outside the model file, which can hold 2 GB."""
_EXTERNAL_THRESHOLD: Final = 1024
"""Size of a tensor in bytes from which it goes to the file beside the model."""


@dataclass(frozen=True, slots=True)
class LinkedModel:
    """A model's structure, and the location of its weights."""

    model: ModelProto
    folders: DataFolders
    external: bool
    """Whether the original file stores weights externally."""

    def array(self, tensor: TensorProto) -> np.ndarray:
        """The values of one tensor. Raises `StageError` if its data is missing."""
        return numpy_helper.to_array(self.whole(tensor))

    def whole(self, tensor: TensorProto) -> TensorProto:
        """A copy of a tensor with its data inside. Raises `StageError` if that is missing."""
        copy = deepcopy(tensor)
        embed_data(copy, self.folders)
        return copy


def open_linked(path: Path) -> LinkedModel:
    """The model at `path`. Raises `ModelError`."""
    model = read_structure(path, link=True)
    unlist_initializers(model)  # new ones would not be inputs
    return LinkedModel(model, DataFolders(path, path.parent), has_external_data(read_structure(path)))


def write_linked(linked: LinkedModel, target: Path) -> ModelProto:
    """Write the canonical form of a changed model to `target`, and return its structure.

    Weights go to a file beside it where they did before, or where they are too large for one model file.
    Raises `StageError`, `OSError`.
    """
    model = linked.model
    rewrite_model(model)
    external = linked.external or sum(map(tensor_bytes, model.graph.initializer)) > _EMBEDDED_LIMIT
    data = target.with_name(f"{target.name}.data")
    place_weights(model, linked.folders, data, _EXTERNAL_THRESHOLD if external else None)
    if model.ByteSize() > PROTOBUF_LIMIT:
        raise StageError("the model without its weights is larger than the 2 GB that one ONNX file can hold")
    target.write_bytes(model.SerializeToString(deterministic=True))
    return model


def open_structure(model: ModelProto, folder: Path, settings: SessionSettings) -> onnxruntime.InferenceSession:
    """A session on a linked model in memory; `folder` contains its weights. Raises `StageError`."""
    options = session_options(settings)
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, enable_fallback=0)
    except RUNTIME_ERRORS as cause:
        raise StageError(
            "ONNX Runtime cannot load the model", details=(clean_message(cause, folder / "model.onnx"),)
        ) from cause
