"""Whether two model files have the same graph, and the same bytes in every tensor."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from onnx import ModelProto, TensorProto

from bundler.model.errors import StageError
from bundler.onnxkit.canonical.tensor_data import DataFolders, Span
from bundler.onnxkit.structure import iterate_tensors, read_structure


def check_same(before: Path, after: Path) -> None:
    """Raise `StageError` unless the models are equal in all but the place of their tensors' bytes."""
    pairs = [(read_structure(path, link=True), DataFolders(path, path.parent)) for path in (before, after)]
    tensors = [[(tensor, folders) for tensor in iterate_tensors(model)] for model, folders in pairs]
    if len(tensors[0]) != len(tensors[1]):
        raise StageError(f"{after.name} has different tensors than its source model")
    for (old, here), (new, there) in zip(*tensors, strict=True):
        same = all(a == b for a, b in zip_longest(_read(old, here), _read(new, there)))
        if not same or (old.name, old.data_type, list(old.dims)) != (new.name, new.data_type, list(new.dims)):
            raise StageError(f"tensor {new.name[:80]!r} differs from the source model")
    if _strip(pairs[0][0]) != _strip(pairs[1][0]):
        raise StageError(f"{after.name} has a different graph than its source model")


def read_span(tensor: TensorProto, folders: DataFolders) -> Span | None:
    """Where the tensor's bytes are; None for those in the tensor. Raises `StageError` for a place that is none."""
    try:
        span = folders.span(tensor)
    except (KeyError, ValueError, OSError) as error:
        raise StageError(f"tensor {tensor.name[:80]!r} does not name the file of its data") from error
    if span is not None and (span.offset < 0 or span.length < 0):
        raise StageError(f"tensor {tensor.name[:80]!r} has a negative offset")
    return span


def _read(tensor: TensorProto, folders: DataFolders) -> Iterator[bytes]:
    span = read_span(tensor, folders)
    if span is not None:
        yield from span.chunks()
    elif tensor.raw_data:
        yield tensor.raw_data


def _strip(model: ModelProto) -> bytes:
    """The model without its tensors' bytes, and without their places. Changes `model`."""
    for tensor in iterate_tensors(model):
        for name in ("raw_data", "external_data", "data_location"):
            tensor.ClearField(name)
    return bytes(model.SerializeToString(deterministic=True))
