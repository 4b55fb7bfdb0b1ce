"""Frozen dataclasses to JSON and back.

Workers run in environments that hold nothing of ours but the standard library, so the values that cross a
pipe or stand in an action record cannot lean on a serialisation package.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def encode(value: Any) -> Any:
    """`value` (dataclasses, mappings, sequences and scalars) as plain JSON data."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


def decode(kind: type[T], data: Any) -> T:
    """A `kind` from what `encode` made of one. Raises `TypeError` or `KeyError` where `data` does not fit."""
    return typing.cast("T", _decode(kind, data))


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _decode(kind: Any, data: Any) -> Any:
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(typing.cast("type", kind), data)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(arguments, data)
    if origin is tuple:
        return tuple(_decode(arguments[0], item) for item in data)
    if origin in (dict, Mapping):
        return {key: _decode(arguments[1], item) for key, item in data.items()}
    return data


def _decode_dataclass(kind: type, data: Any) -> Any:
    hints = _hints(kind)
    known = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: _decode(hints[name], item) for name, item in data.items() if name in known})


def _decode_union(arguments: tuple[Any, ...], data: Any) -> Any:
    if data is None and type(None) in arguments:
        return None
    for candidate in arguments:
        if dataclasses.is_dataclass(candidate) and isinstance(data, Mapping):
            return _decode(candidate, data)
    return data
