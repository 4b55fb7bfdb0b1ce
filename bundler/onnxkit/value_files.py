"""Convert values to the golden set's files and back.

Values have the types of the runtime's Python API: an array (strings as objects), a list for a sequence, a
dict for a map, None for an empty optional.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from bundler.model.confinement import find_inside
from bundler.model.errors import StageError
from bundler.model.signature import ValueType
from bundler.onnxkit.elements import Element, element_named, element_of_array, storage_bytes

MAX_SAMPLE_BYTES: Final = 1 << 30
"""Limit for one sample's inputs in bytes, generated or read."""
Value = np.ndarray | list[Any] | dict[Any, Any] | None

_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(slots=True)
class ValueWriter:
    """Writes values below `root`; files are named by `folder` and a count, never by anything from the model."""

    root: Path
    folder: str
    prefix: str
    written: int = 0

    def write(self, value: Value, kind: ValueType) -> dict[str, Any]:
        """Store one value of the type `kind` and return its entry for `index.json`."""
        if value is None:
            return {"kind": "none"}
        if isinstance(value, Mapping):
            return encode_map(value, kind)
        if isinstance(value, list):
            inner = _inner(kind)
            return {"kind": "sequence", "items": [self.write(item, inner) for item in value]}
        return self._write_tensor(np.asarray(value))

    def _write_tensor(self, array: np.ndarray) -> dict[str, Any]:
        element = element_of_array(array)
        entry: dict[str, Any] = {"kind": "tensor", "type": element.name, "shape": list(array.shape)}
        if element.name == "str":
            return entry | {"values": [_as_text(item) for item in array.reshape(-1)]}
        name = f"{self.folder}/{self.prefix}-{self.written}.bin"
        self.written += 1
        (self.root / self.folder).mkdir(parents=True, exist_ok=True)
        (self.root / name).write_bytes(to_storage(array, element))
        return entry | {"file": name}


def tensors_of(value: Value) -> Iterator[np.ndarray]:
    """All tensors in a value; a map's values are one."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from tensors_of(item)
    elif isinstance(value, dict):
        yield np.array(list(value.values()))


def count_bytes(values: Mapping[str, Value]) -> int:
    """Bytes of values on disk; text and maps are not counted."""
    return sum(_value_bytes(value) for value in values.values())


def _value_bytes(value: Value) -> int:
    if isinstance(value, list):
        return sum(map(_value_bytes, value))
    if not isinstance(value, np.ndarray) or value.dtype.kind in "OUST":
        return 0
    return storage_bytes(element_of_array(value), value.size)


def _inner(kind: ValueType) -> ValueType:
    """The type of a sequence's items; for an optional sequence, of its items."""
    if kind.kind == "optional" and kind.element is not None:
        return _inner(kind.element)
    return kind.element or ValueType()


def encode_map(value: Mapping[Any, Any], kind: ValueType) -> dict[str, Any]:
    """A map's entry; its types are those of the signature, because an empty map shows none."""
    number = kind.element.element_type if kind.element else None
    return {
        "kind": "map",
        "key_type": kind.key_type or "int64",
        "value_type": number or "float32",
        "keys": [_as_plain(key) for key in value],
        "values": [_as_plain(item) for item in value.values()],
    }


def _as_text(item: Any) -> str:
    return item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item)


def _as_plain(item: Any) -> Any:
    if isinstance(item, (str, bytes)):
        return _as_text(item)
    number = item.item() if hasattr(item, "item") else item
    if isinstance(number, float) and not math.isfinite(number):
        return "NaN" if math.isnan(number) else ("Infinity" if number > 0 else "-Infinity")
    return number


def to_storage(array: np.ndarray, element: Element) -> bytes:
    """Little-endian bytes in C order; small elements packed, the first one in the low bits."""
    if not element.packed:
        little = array.astype(array.dtype.newbyteorder("<"), copy=False) if not element.foreign else array
        return little.tobytes()
    per_byte = 8 // element.bits
    flat = array.reshape(-1).view(np.uint8) & ((1 << element.bits) - 1)
    padded = np.concatenate([flat, np.zeros(-flat.size % per_byte, np.uint8)]).reshape(-1, per_byte)
    shifts = np.arange(per_byte, dtype=np.uint8) * element.bits
    packed: np.ndarray = np.bitwise_or.reduce(padded << shifts, axis=1).astype(np.uint8)
    return packed.tobytes()


def from_storage(data: bytes, element: Element, shape: Sequence[int]) -> np.ndarray:
    """The inverse of `to_storage`. Raises `StageError` when the bytes do not fit the shape."""
    count = math.prod(shape)
    if len(data) != storage_bytes(element, count):
        raise StageError(
            f"a golden tensor of {element.name}{list(shape)} holds {len(data)} bytes instead of "
            f"{storage_bytes(element, count)}",
            hint="the cache was changed; run `bundler cache clear` and build again",
        )
    if not element.packed:
        return np.frombuffer(data, element.dtype).reshape(shape)
    per_byte = 8 // element.bits
    shifts = np.arange(per_byte, dtype=np.uint8) * element.bits
    spread = (np.frombuffer(data, np.uint8)[:, None] >> shifts) & ((1 << element.bits) - 1)
    # A cast from the integer, not a view: the sign bit of a small integer is at another position.
    flat = spread.reshape(-1)[:count]
    return _from_codes(flat, element).reshape(shape)


def _from_codes(codes: np.ndarray, element: Element) -> np.ndarray:
    if element.name.startswith("int"):
        signed = codes.astype(np.int8)
        signed[signed >= 1 << (element.bits - 1)] -= 1 << element.bits
        return signed.astype(element.dtype)
    if element.name.startswith("uint"):
        return codes.astype(element.dtype)
    return codes.view(element.dtype)


def read_value(root: Path, entry: Mapping[str, Any]) -> Value:
    """A value from its entry in the `index.json` in `root`. Raises `ValueError` for a file outside or incomplete."""
    kind = entry["kind"]
    if kind == "none":
        return None
    if kind == "sequence":
        return [read_value(root, item) for item in entry["items"]]
    if kind == "map":
        return dict(zip(entry["keys"], (_number(item) for item in entry["values"]), strict=True))
    return _read_tensor(root, entry)


def _number(item: Any) -> Any:
    return _NON_FINITE.get(item, item) if isinstance(item, str) else item


def _read_tensor(root: Path, entry: Mapping[str, Any]) -> np.ndarray:
    element = element_named(entry["type"])
    if element.name == "str":
        return np.array(entry["values"], dtype=object).reshape(entry["shape"])
    path = find_inside(root, entry["file"])
    if path.stat().st_size > MAX_SAMPLE_BYTES:
        raise ValueError(f"{entry['file']} is larger than any recorded value")
    return from_storage(path.read_bytes(), element, entry["shape"])
