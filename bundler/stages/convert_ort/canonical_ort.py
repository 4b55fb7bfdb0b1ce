"""One canonical form for ONNX Runtime's `.ort` files.

Two saves of one model differ only in one section: the kernel type string resolver, whose entries are in the order of a
hash map that is seeded by a load address. It is built last, so it is at the start of the file; the model after it
refers only forward and can be moved unchanged. So: read the resolver, write a new start in sorted order, copy the
rest from file to file.
"""

from __future__ import annotations

import mmap
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import flatbuffers
from flatbuffers.number_types import Int8Flags, SOffsetTFlags, Uint32Flags
from flatbuffers.table import Table

from bundler.model.errors import StageError

_ALIGNMENT: Final = 64
_IDENTIFIER: Final = b"ORTM"
# Field numbers from onnxruntime/core/flatbuffers/schema/ort.fbs
_VERSION, _MODEL, _SESSION_STATE, _RESOLVER = range(4)


class _Table(Table):  # type: ignore[misc] # the library has no types
    """The fields of a table by number: the generated code in the onnxruntime wheel cannot be imported cleanly."""

    @property
    def vtable(self) -> int:
        """The position of the table of its fields."""
        return int(self.Pos - self.Get(SOffsetTFlags, self.Pos))

    def _slot(self, number: int) -> int:
        return int(self.Offset(4 + 2 * number))

    def target(self, number: int) -> int | None:
        """The position that field `number` refers to, or None when it is absent."""
        slot = self._slot(number)
        return int(self.Indirect(self.Pos + slot)) if slot else None

    def scalar(self, number: int, flags: Any) -> int:
        """Field `number`, a number of the given type; 0 when absent."""
        slot = self._slot(number)
        return int(self.Get(flags, self.Pos + slot)) if slot else 0

    def string(self, number: int) -> str:
        """Field `number`, a string."""
        slot = self._slot(number)
        return str(self.String(self.Pos + slot), "utf-8") if slot else ""

    def tables(self, number: int) -> list[_Table]:
        """Field `number`, a vector of tables."""
        slot = self._slot(number)
        places = range(self.Vector(slot), self.Vector(slot) + 4 * self.VectorLen(slot), 4) if slot else ()
        return [_Table(self.Bytes, self.Indirect(place)) for place in places]


Entry = tuple[str, tuple[tuple[int, int], ...]]
"""A name and (argument kind, index) pairs, in the stable order of the file: the runtime uses the first that fits."""
Op = tuple[str, tuple[Entry, ...]]
"""The identifier of an operator, and its types."""


def _read_entry(entry: _Table) -> Entry:
    arguments = ((item.scalar(0, Int8Flags), item.scalar(1, Uint32Flags)) for item in entry.tables(1))
    return entry.string(0), tuple(arguments)


def _offsets(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _table(builder: flatbuffers.Builder, *children: int) -> int:
    builder.StartObject(len(children))
    for number, child in enumerate(children):
        builder.PrependUOffsetTRelativeSlot(number, child, 0)
    return int(builder.EndObject())


def _write_resolver(ops: Sequence[Op]) -> bytes:
    builder = flatbuffers.Builder(1024)

    def arg(kind: int, index: int) -> int:
        builder.StartObject(2)
        builder.PrependInt8Slot(0, kind, 0)
        builder.PrependUint32Slot(1, index, 0)
        return int(builder.EndObject())

    def entry(item: Entry) -> int:
        name, arguments = item
        return _table(builder, builder.CreateSharedString(name), _offsets(builder, [arg(*one) for one in arguments]))

    def operator(op: Op) -> int:
        name, entries = op
        return _table(builder, builder.CreateSharedString(name), _offsets(builder, list(map(entry, entries))))

    builder.Finish(_table(builder, _offsets(builder, list(map(operator, ops)))))
    return bytes(builder.Output())


def _front(ops: Sequence[Op], version_at: int, model_at: int, length: int) -> bytes:
    """The new start. `version_at` and `model_at` count from the start of the copied part of `length` bytes."""
    resolver = _write_resolver(ops)
    # At 0 the root offset, 4 the identifier, 8 a vtable of 4 fields (12 bytes), 20 the root table, 36 padding.
    vtable = struct.pack("<6H", 12, 16, 4, 8, 0, 12)
    body = 40  # the resolver's own buffer, at a multiple of 8 as it was built
    end = body + len(resolver)
    end += -(end + length) % _ALIGNMENT  # FlatBuffers aligns from the end of the file
    (resolver_root,) = struct.unpack_from("<I", resolver)
    table = struct.pack("<iIII", 20 - 8, end + version_at - 24, end + model_at - 28, body + resolver_root - 32)
    return (struct.pack("<I", 20) + _IDENTIFIER + vtable + table + bytes(4) + resolver).ljust(end, b"\0")


def canonicalize_ort(path_in: Path, path_out: Path) -> None:
    """Write the canonical form of the `.ort` file at `path_in`. Raises `StageError` for an unknown layout."""
    with path_in.open("rb") as source, mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as data:
        start, front = _new_front(data, path_in.name)
        with path_out.open("wb") as out:
            out.write(front)
            source.seek(start)
            shutil.copyfileobj(source, out, 1 << 22)


def _new_front(data: mmap.mmap, name: str) -> tuple[int, bytes]:
    """The position where the copied part begins, and the bytes before it."""
    if data[4:8] != _IDENTIFIER:
        raise StageError(f"{name}: no ORTM identifier")
    root = _Table(data, struct.unpack_from("<I", data)[0])
    model_at, version_at, resolver_at = root.target(_MODEL), root.target(_VERSION), root.target(_RESOLVER)
    if model_at is None or version_at is None or resolver_at is None or root.target(_SESSION_STATE) is not None:
        raise StageError(f"{name}: not the layout of ORT format version 5 or later")
    vtable = _Table(data, model_at).vtable
    start = min(model_at, vtable) if vtable > resolver_at else model_at
    if not resolver_at < start < version_at:
        raise StageError(f"{name}: the model is not after the kernel type resolver")
    resolver = _Table(data, resolver_at)
    ops = sorted((op.string(0), tuple(sorted(map(_read_entry, op.tables(1))))) for op in resolver.tables(0))
    return start, _front(ops, version_at - start, model_at - start, len(data) - start)
