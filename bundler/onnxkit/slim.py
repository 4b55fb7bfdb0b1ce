"""Read a model file without loading its weights.

A model file is one protobuf message, and its weights are byte fields with a length in front. A walk over the mapped
file that skips large tensor payloads touches only the pages with structure: a model of gigabytes is read in
milliseconds and in the memory of its graph alone.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

MAX_KEPT_PAYLOAD: Final = 4096
"""Bytes of tensor data that are kept: shapes, axes and other small constants, which shape inference reads."""


class WireError(ValueError):
    """The bytes are not a protobuf message. `truncated` says that they end too early."""

    def __init__(self, message: str, *, truncated: bool) -> None:
        super().__init__(message)
        self.truncated = truncated


@dataclass(slots=True)
class _Message:
    """The fields of a message that hold messages to walk into, those with tensor data, and the number from which there
    is neither: long lists of numbers, each a field of its own.
    """

    inner: dict[int, _Message] = field(default_factory=dict)
    payload: frozenset[int] = frozenset()
    lists: frozenset[int] = frozenset()


def _schema() -> _Message:
    """The part of onnx.proto on the path to tensors, by field numbers."""
    tensor = _Message(payload=frozenset({4, 5, 6, 7, 9, 10, 11}))
    sparse = _Message({1: tensor, 2: tensor})
    graph, attribute = _Message(), _Message(lists=frozenset({7, 8, 9}))
    node = _Message({5: attribute})
    attribute.inner.update({5: tensor, 6: graph, 10: tensor, 11: graph, 22: sparse, 23: sparse})
    graph.inner.update({1: node, 5: tensor, 15: sparse})
    return _Message({7: graph, 25: _Message({7: node})})


_MODEL: Final = _schema()
_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION, _EXTERNAL = 9, 13, 14, 1
"""Fields of TensorProto, and the value of `data_location` for external data."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Wire types of the protobuf encoding."""
_MORE: Final = 0x80
"""The bit that marks a number that continues in the next byte."""
_FIXED: Final[Mapping[int, int]] = {_FIXED64: 8, _FIXED32: 4}
"""Sizes in bytes."""


def read_without_weights(path: Path, *, link: bool = False) -> bytes:
    """The bytes of the model file at `path` without tensor payloads over 4 KiB. Raises `WireError`, `OSError`.

    With `link`, an omitted raw payload is declared as external data in this file, at the position of the payload, so
    that a writer of the model can copy it from file to file.
    """
    with path.open("rb") as stream:
        if path.stat().st_size == 0:
            raise WireError("the file is empty", truncated=True)
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Slimmer(data, path.name if link else None).slim(0, len(data), _MODEL)


@dataclass(slots=True)
class _Slimmer:
    data: mmap.mmap
    link: str | None

    def slim(self, start: int, end: int, message: _Message) -> bytes:
        pieces: list[bytes] = []
        links: list[bytes] = []
        position = start
        while position < end:
            field_start = position
            tag, position = _varint(self.data, position, end)
            number, wire = tag >> 3, tag & 7
            if number in message.lists:
                pieces.append(self.data[field_start:end])
                break
            if wire != _BYTES:
                position = _skip(self.data, position, end, wire)
                pieces.append(self.data[field_start:position])
                continue
            length, body = _varint(self.data, position, end)
            position = body + length
            if position > end:
                text = f"a field at byte {body} requires {length} bytes, and {end - body} are left"
                raise WireError(text, truncated=True)
            linkable = self.link is None or number == _RAW_DATA
            if number in message.inner:
                pieces.append(_bytes_field(number, self.slim(body, position, message.inner[number])))
            elif length <= MAX_KEPT_PAYLOAD or number not in message.payload or not linkable:
                pieces.append(self.data[field_start:position])
            elif self.link is not None:
                links.append(_external_data(self.link, body, length))
        # Last, because the last value of a field counts: many writers say explicitly that data lie in the model.
        return b"".join((*pieces, *links))


def _external_data(location: str, offset: int, length: int) -> bytes:
    """The fields of a TensorProto with the location of its data."""
    entries = (("location", location), ("offset", str(offset)), ("length", str(length)))
    fields = b"".join(
        _bytes_field(_EXTERNAL_DATA, _bytes_field(1, k.encode()) + _bytes_field(2, v.encode())) for k, v in entries
    )
    return fields + _encode(_DATA_LOCATION << 3 | _VARINT) + _encode(_EXTERNAL)


def _bytes_field(number: int, data: bytes) -> bytes:
    return _encode(number << 3 | _BYTES) + _encode(len(data)) + data


def _skip(data: mmap.mmap, position: int, end: int, wire: int) -> int:
    if wire == _VARINT:
        return _varint(data, position, end)[1]
    if wire not in _FIXED:
        raise WireError(f"no protobuf field before byte {position}", truncated=False)
    position += _FIXED[wire]
    if position > end:
        raise WireError(f"the last field ends {position - end} bytes after the end", truncated=True)
    return position


def _varint(data: mmap.mmap, position: int, end: int) -> tuple[int, int]:
    result = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise WireError(f"a number is truncated at byte {position}", truncated=True)
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < _MORE:
            return result, position
    raise WireError(f"no protobuf number before byte {position}", truncated=False)


def _encode(number: int) -> bytes:
    out = bytearray()
    while number >= _MORE:
        out.append(number & 0x7F | _MORE)
        number >>= 7
    out.append(number)
    return bytes(out)
