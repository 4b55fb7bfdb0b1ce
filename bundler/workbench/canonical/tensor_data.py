"""Where a model's tensor data stands, and its way into a file of its own, from file to file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from onnx import TensorProto, numpy_helper

from bundler.model.errors import StageError

PAGE: Final = 4096
"""Start of every external tensor: a page, so that mapping it costs no neighbouring page."""
WINDOWS_GRANULARITY: Final = 65536
"""Start of a tensor so big that the padding does not matter: what MapViewOfFile on Windows asks of an offset."""
BIG: Final = 1 << 20
CHUNK: Final = 1 << 22
_RAW_TYPES: Final = frozenset({
    TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.BOOL,
    TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64,
    TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64,
})  # fmt: skip
"""Types whose typed fields convert to little-endian bytes without packing. Others are left as they stand."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where a tensor's bytes stand in the file that they came from."""

    path: Path
    offset: int
    length: int

    def chunks(self) -> Iterator[bytes]:
        """The bytes, in pieces of 4 MiB. Raises `StageError` when the file ends early."""
        left = self.length
        with self.path.open("rb") as file:
            file.seek(self.offset)
            while left:
                chunk = file.read(min(CHUNK, left))
                if not chunk:
                    raise StageError(f"{self.path}: external data ends {left} bytes early")
                left -= len(chunk)
                yield chunk


@dataclass(frozen=True, slots=True)
class DataFolders:
    """Where external data may stand: the model file itself (`saved`, whose payloads are linked) with the files beside
    it, and the folder of the model that it was made from.
    """

    saved: Path
    source: Path

    def span(self, tensor: TensorProto) -> Span | None:
        """Where the tensor's bytes are, or None when they are in the tensor. Raises `StageError`."""
        if tensor.data_location != TensorProto.EXTERNAL:
            return None
        entries = {entry.key: entry.value for entry in tensor.external_data}
        path = self._find(entries["location"])
        offset = int(entries.get("offset", "0"))
        return Span(path, offset, int(entries["length"]) if "length" in entries else path.stat().st_size - offset)

    def _find(self, location: str) -> Path:
        for folder in (self.saved.parent, self.source):
            path = folder / location
            if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
                return path
        raise StageError(f"the optimised model points to external data {location!r}, which is not there")


def _to_raw(tensor: TensorProto) -> None:
    """Typed fields to raw bytes, so that one value has one form."""
    if tensor.data_type in _RAW_TYPES and not tensor.HasField("raw_data"):
        raw = numpy_helper.tobytes_little_endian(numpy_helper.to_array(tensor))
        for name in ("float_data", "double_data", "int32_data", "int64_data", "uint64_data"):
            tensor.ClearField(name)
        tensor.raw_data = raw


class _DataFile:
    """Writes tensors one after the other, aligned; equal bytes are stored once. Made only if something is stored."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._end = 0
        self._known: dict[tuple[int, bytes], int] = {}

    def store(self, chunks: Iterable[bytes | memoryview], length: int) -> int:
        """Copies in one pass: written first, taken back if the digest shows that the bytes are there already."""
        if self._file is None:
            self._file = self.path.open("wb")
        alignment = WINDOWS_GRANULARITY if length >= BIG else PAGE
        start = -(-self._end // alignment) * alignment
        self._file.seek(start)
        digest = hashlib.sha256()
        for chunk in chunks:
            self._file.write(chunk)
            digest.update(chunk)
        known = self._known.setdefault((length, digest.digest()), start)
        if known != start:
            self._file.truncate(self._end)
            return known
        self._end = start + length
        return start

    def close(self) -> None:
        if self._file is not None:
            self._file.truncate(self._end)
            self._file.close()


def place_initializers(
    tensors: Iterable[TensorProto], folders: DataFolders, data_path: Path, threshold: int | None
) -> None:
    """Tensors of `threshold` bytes or more to the file at `data_path`, in the order given; others into the model. None
    keeps all in the model. The file is made only if something goes there.
    """
    out = _DataFile(data_path)
    try:
        for tensor in tensors:
            _place(tensor, folders, out, threshold)
    finally:
        out.close()


def _place(tensor: TensorProto, folders: DataFolders, out: _DataFile, threshold: int | None) -> None:
    span = folders.span(tensor)
    if span is None:
        _to_raw(tensor)
    length = span.length if span is not None else len(tensor.raw_data)
    movable = span is not None or tensor.HasField("raw_data")
    if threshold is None or length < threshold or not movable:
        embed_data(tensor, folders)
        return
    offset = out.store(span.chunks() if span is not None else [memoryview(tensor.raw_data)], length)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    del tensor.external_data[:]
    for key, value in (("location", out.path.name), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)


def embed_data(tensor: TensorProto, folders: DataFolders) -> None:
    """Put a tensor's external bytes into the tensor."""
    span = folders.span(tensor)
    if span is not None:
        tensor.raw_data = b"".join(span.chunks())
    del tensor.external_data[:]
    tensor.ClearField("data_location")
