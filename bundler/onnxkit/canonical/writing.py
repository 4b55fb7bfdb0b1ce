"""Write the canonical form of a model file."""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto

from bundler.model.errors import StageError
from bundler.onnxkit.canonical.rewriting import rewrite_model
from bundler.onnxkit.canonical.tensor_data import PROTOBUF_LIMIT, DataFolders, place_weights
from bundler.onnxkit.structure import read_structure, tensor_bytes


def canonicalize(
    saved: Path, target: Path, *, source: Path, external_threshold: int | None, external_minimum: int = 0
) -> ModelProto:
    """Write the canonical form of the model at `saved` to `target`, and return its structure.

    Initializers of the main graph with `external_threshold` bytes or more go to `<target>.data`, each at the start of a
    page, copied from file to file; None keeps them in the model, as for a model with less than `external_minimum` bytes
    of them: small files load faster whole. `source` is the folder of the original model of `saved`: a tool
    may have left references to external data there. Raises `StageError`, `ModelError`, `OSError`.
    """
    model = read_structure(saved, link=True)
    folders = DataFolders(saved, source)
    rewrite_model(model)
    large = sum(map(tensor_bytes, model.graph.initializer)) >= external_minimum
    place_weights(model, folders, target.with_name(f"{target.name}.data"), external_threshold if large else None)
    if model.ByteSize() > PROTOBUF_LIMIT:
        hint = "it requires external data: set an external threshold"
        raise StageError("the model is larger than the 2 GB that one ONNX file can hold", hint=hint)
    target.write_bytes(model.SerializeToString(deterministic=True))
    return model
