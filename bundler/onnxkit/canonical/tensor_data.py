"""Locate a model's tensor data, and copy it to an external file, from file to file."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from onnx import ModelProto, TensorProto, numpy_helper

from bundler.model.errors import StageError
from bundler.model.paths import real_path
from bundler.onnxkit.structure import (
    has_external_data,
    iterate_graphs,
    iterate_tensors,
    read_structure,
    tensor_bytes,
)
from bundler.support.text import format_bytes

PROTOBUF_LIMIT: Final = 2**31 - 1
"""Limit of one protobuf message in bytes."""
PAGE_BYTES: Final = 4096
"""Alignment of every external tensor: a page, so that mapping it loads no neighbouring page."""
WINDOWS_GRANULARITY: Final = 65536
"""Alignment of tensors that are large compared with the padding: MapViewOfFile on Windows requires it of an offset."""
LARGE_TENSOR_BYTES: Final = 1 << 20
EMBEDDED_LIMIT: Final = 1 << 26
"""Size of a model file in bytes from which its weights go to an external file."""
EXTERNAL_THRESHOLD: Final = 1024
"""Size of a tensor in bytes from which it goes there."""
CHUNK_BYTES: Final = 1 << 22
SAMPLE_BYTES: Final = 1 << 14
_RAW_TYPES: Final = frozenset({
    TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.BOOL,
    TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64,
    TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64,
})  # fmt: skip
"""Types whose typed fields convert to little-endian bytes without packing. Others are not changed."""


@dataclass(frozen=True, slots=True)
class Span:
    """The position of a tensor's bytes in their original file."""

    path: Path
    offset: int
    length: int

    def chunks(self) -> Iterator[bytes]:
        """The bytes, in pieces of 4 MiB. Raises `StageError` when the file ends early."""
        left = self.length
        with self.path.open("rb") as file:
            file.seek(self.offset)
            while left:
                chunk = file.read(min(CHUNK_BYTES, left))
                if not chunk:
                    raise StageError(f"{self.path.name}: external data ends {left} bytes early")
                left -= len(chunk)
                yield chunk


@dataclass(frozen=True, slots=True)
class DataFolders:
    """Folders for external data: the model file itself (`saved`, whose payloads are linked), or the folder of the
    original model. `saved` has a name that no file there has, unless it is that model.
    """

    saved: Path
    source: Path

    def span(self, tensor: TensorProto) -> Span | None:
        """The position of the tensor's bytes, or None when they are in the tensor. Raises `StageError`.

        A missing length is that of the values, as for the runtime: others may follow in the file.
        """
        if tensor.data_location != TensorProto.EXTERNAL:
            return None
        entries = {entry.key: entry.value for entry in tensor.external_data}
        path = self._find(entries["location"])
        offset = int(entries.get("offset") or "0")
        return Span(path, offset, int(entries["length"]) if entries.get("length") else tensor_bytes(tensor))

    def _find(self, location: str) -> Path:
        if location == self.saved.name:
            return self.saved
        path = self.source / location
        if not path.is_file() or not real_path(path).is_relative_to(real_path(self.source)):
            raise StageError(f"the optimised model refers to external data {location!r}, which does not exist")
        return path


def _to_raw(tensor: TensorProto) -> None:
    """Convert typed fields to raw bytes, so that one value has one form."""
    if tensor.data_type in _RAW_TYPES and not tensor.HasField("raw_data"):
        raw = numpy_helper.tobytes_little_endian(numpy_helper.to_array(tensor))
        for name in ("float_data", "double_data", "int32_data", "int64_data", "uint64_data"):
            tensor.ClearField(name)
        tensor.raw_data = raw


class DataFile:
    """Writes tensors one after another, aligned; equal bytes are stored once. The first write creates the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._end = 0
        self._known: dict[tuple[int, bytes], list[int]] = {}
        """Offsets of tensors with one length and one sample of their bytes."""

    def store(self, data: Span | bytes) -> tuple[int, int]:
        """The offset of the bytes in the file, and their number."""
        if self._file is None:
            self._file = self.path.open("w+b")
        length = data.length if isinstance(data, Span) else len(data)
        places = self._known.setdefault((length, _sample(data)), [])
        for start in places:
            if _holds(self._file, start, data):
                return start, length
        alignment = WINDOWS_GRANULARITY if length >= LARGE_TENSOR_BYTES else PAGE_BYTES
        start = -(-self._end // alignment) * alignment
        self._file.seek(start)
        _write(self._file, data)
        places.append(start)
        self._end = start + length
        return start, length

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._file is not None:
            self._file.close()


def _holds(file: BinaryIO, start: int, data: Span | bytes) -> bool:
    chunks = data.chunks() if isinstance(data, Span) else (data,)
    file.seek(start)
    return all(file.read(len(chunk)) == chunk for chunk in chunks)


def _sample(data: Span | bytes) -> bytes:
    """A digest of the first and the last bytes, to find candidates for equal tensors."""
    if isinstance(data, bytes):
        return hashlib.sha256(data[:SAMPLE_BYTES] + data[-SAMPLE_BYTES:]).digest()
    with data.path.open("rb") as file:
        file.seek(data.offset)
        first = file.read(min(SAMPLE_BYTES, data.length))
        file.seek(data.offset + max(0, data.length - SAMPLE_BYTES))
        return hashlib.sha256(first + file.read(min(SAMPLE_BYTES, data.length))).digest()


def _write(file: BinaryIO, data: Span | bytes) -> None:
    """Append to `file`; between files the kernel copies if it can."""
    if isinstance(data, bytes):
        file.write(data)
        return
    file.flush()
    if not _copy_in_kernel(file, data):
        file.writelines(data.chunks())


def _copy_in_kernel(file: BinaryIO, span: Span) -> bool:
    """Whether the whole span was copied; unsupported file systems fail before the first byte."""
    if not hasattr(os, "copy_file_range"):
        return False
    start, done = file.tell(), 0
    with span.path.open("rb") as source:
        while done < span.length:
            try:
                copied = os.copy_file_range(
                    source.fileno(), file.fileno(), span.length - done, span.offset + done, start + done
                )
            except OSError:
                if done:
                    raise
                return False
            if not copied:
                raise StageError(f"{span.path.name}: external data ends {span.length - done} bytes early")
            done += copied
    file.seek(start + done)
    return True


def write_linked(model: ModelProto, source: Path, path: Path) -> None:
    """Write what `read_structure(source, link=True)` read to `path`. Small models embed their weights; others get the
    external file `<path>.data`, copied from file to file. Raises `StageError`.
    """
    external = has_external_data(read_structure(source))
    threshold = EXTERNAL_THRESHOLD if external or source.stat().st_size > EMBEDDED_LIMIT else None
    place_weights(model, DataFolders(source, source.parent), path.with_name(f"{path.name}.data"), threshold)
    path.write_bytes(model.SerializeToString(deterministic=True))


def place_weights(model: ModelProto, folders: DataFolders, data_path: Path, threshold: int | None) -> None:
    """Move initializers of the main graph that have `threshold` bytes or more to the file at `data_path`, in their
    order, and all other tensors into the model. None keeps all in the model. The file is only created if it has
    contents. Raises `StageError`.
    """
    embed_nested(model, folders)
    with contextlib.closing(DataFile(data_path)) as out:
        for depth, graph in enumerate(iterate_graphs(model)):
            for tensor in graph.initializer:
                place_tensor(tensor, folders, out, None if depth else threshold)


def place_tensor(tensor: TensorProto, folders: DataFolders, out: DataFile, threshold: int | None) -> None:
    """Move a tensor of `threshold` bytes or more to `out`, and a smaller one into the model."""
    span = folders.span(tensor)
    if span is None:
        _to_raw(tensor)
    length = span.length if span is not None else len(tensor.raw_data)
    movable = span is not None or tensor.HasField("raw_data")
    if threshold is None or length < threshold or not movable:
        embed_data(tensor, folders)
        return
    offset, length = out.store(span if span is not None else tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    del tensor.external_data[:]
    for key, value in (("location", out.path.name), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)


def embed_data(tensor: TensorProto, folders: DataFolders) -> None:
    """Copy a tensor's external bytes into the tensor."""
    span = folders.span(tensor)
    if span is not None:
        tensor.raw_data = b"".join(span.chunks())
    del tensor.external_data[:]
    tensor.ClearField("data_location")


def embed_nested(model: ModelProto, folders: DataFolders) -> None:
    """Embed the data of all tensors other than initializers of the main graph, which alone may have external data.

    ONNX Runtime refuses weights of a nested graph (a branch, a loop's body) in a file that is a symbolic link or has
    a second hard link, as installers make them (1.31). Raises `StageError`.
    """
    outer = {id(tensor): tensor for tensor in model.graph.initializer}
    nested = [
        tensor
        for tensor in iterate_tensors(model)
        if tensor.data_location == TensorProto.EXTERNAL and id(tensor) not in outer
    ]
    size = sum(map(tensor_bytes, nested))
    if size > PROTOBUF_LIMIT:
        raise StageError(
            f"the weights in the model's branches and loop bodies have {format_bytes(size)}; they must be in the model "
            "file, which can hold 2 GB",
            hint="export the model with these weights in its main graph: branches and loop bodies can read them there",
        )
    for tensor in nested:
        embed_data(tensor, folders)
