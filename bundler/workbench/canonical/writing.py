"""Write the canonical form of a model file."""

from __future__ import annotations

from pathlib import Path

from onnx import AttributeProto, ModelProto, TensorProto

from bundler.model.errors import StageError
from bundler.workbench.canonical.rewriting import rewrite_model
from bundler.workbench.canonical.tensor_data import DataFolders, embed_data, place_initializers
from bundler.workbench.structure import iterate_graphs, iterate_nodes, read_structure

PROTOBUF_LIMIT = 2**31 - 1
"""Bytes that one protobuf message can hold."""


def canonicalize(saved: Path, target: Path, *, source: Path, external_threshold: int | None) -> ModelProto:
    """Write the canonical form of the model at `saved` to `target`, and answer its structure.

    Initializers of `external_threshold` bytes or more go to `<target>.data`, each at the start of a page, copied from
    file to file; None keeps them in the model. `source` is the folder of the model that `saved` was made from: a tool
    may have left references to external data there. Raises `StageError`, `ModelError`, `OSError`.
    """
    model = read_structure(saved, link=True)
    folders = DataFolders(saved, source)
    tensors = rewrite_model(model)
    place_initializers(tensors, folders, target.with_name(target.name + ".data"), external_threshold)
    _embed_others(model, folders)
    if model.ByteSize() > PROTOBUF_LIMIT:
        raise StageError(
            "the model is larger than the 2 GB that one ONNX file can hold",
            hint="it needs external data: set an external threshold",
        )
    target.write_bytes(model.SerializeToString(deterministic=True))
    return model


def _embed_others(model: ModelProto, folders: DataFolders) -> None:
    """Only initializers may have external data: all other tensors take theirs back."""
    for node in iterate_nodes(model):
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                _embed(attribute.t, folders)
    for graph in iterate_graphs(model):
        for sparse in graph.sparse_initializer:
            _embed(sparse.values, folders)
            _embed(sparse.indices, folders)


def _embed(tensor: TensorProto, folders: DataFolders) -> None:
    if tensor.data_location == TensorProto.EXTERNAL:
        embed_data(tensor, folders)
