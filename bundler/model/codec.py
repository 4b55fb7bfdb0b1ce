"""Frozen dataclasses to JSON and back.

Workers run in environments that have only the standard library for this, so values that cross a pipe or are stored in
an action record cannot use a serialisation package.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")

MAX_DEPTH = 50
"""Maximum nesting of plain JSON; cached facts of models nest a few levels."""
MAX_INTEGER = 1 << 64
"""Larger integers are refused: none is meaningful, and operations on them may take very long."""


def parse_json(text: str | bytes, *, strict: bool = False) -> Any:
    """Parse untrusted JSON. Raises `ValueError`, also for JSON that is nested too deeply, and with `strict` for `NaN`
    and `Infinity`, which are not JSON.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant if strict else None)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


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
    """The inverse of `encode`: a `kind`. Raises `TypeError` or `KeyError` when `data` does not match."""
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


def conforms(kind: Any, data: Any) -> bool:
    """Whether JSON `data` is an encoded `kind`: every field with its type, none missing, none unknown.

    Use it before `decode` for untrusted data. Never raises.
    """
    if dataclasses.is_dataclass(kind):
        return _conforms_to_fields(typing.cast("type", kind), data)
    if typing.is_typeddict(kind):
        return _conforms_to_keys(kind, data)
    return _conforms_to_generic(kind, data)


def _conforms_to_generic(kind: Any, data: Any) -> bool:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(conforms(candidate, data) for candidate in arguments)
    if origin is typing.Literal:
        return isinstance(data, str) and data in arguments
    if origin is tuple:
        return isinstance(data, list) and _conform_items(arguments, data)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(data, dict) and all(conforms(arguments[1], item) for item in data.values())
    return _conforms_to_scalar(kind, data)


def _conforms_to_fields(kind: type, data: Any) -> bool:
    fields = dataclasses.fields(kind)
    nothing = dataclasses.MISSING
    needed = {field.name for field in fields if field.default is nothing and field.default_factory is nothing}
    if not isinstance(data, dict) or not needed <= set(data) <= {field.name for field in fields}:
        return False
    hints = _hints(kind)
    return all(conforms(hints[name], item) for name, item in data.items())


def _conforms_to_keys(kind: Any, data: Any) -> bool:
    """The keys of a `TypedDict` must be there; further keys are allowed."""
    if not isinstance(data, dict) or not kind.__required_keys__ <= set(data):
        return False
    hints = _hints(kind)
    return all(conforms(hints.get(name, Any), item) for name, item in data.items())


def _conform_items(arguments: tuple[Any, ...], items: list[Any]) -> bool:
    if len(arguments) == 2 and arguments[1] is Ellipsis:  # noqa: PLR2004 - tuple[kind, ...]
        return all(conforms(arguments[0], item) for item in items)
    return len(items) == len(arguments) and all(map(conforms, arguments, items))


def _conforms_to_scalar(kind: Any, data: Any) -> bool:
    if kind is Any:
        return is_plain(data)
    if kind is None or kind is type(None):
        return data is None
    if isinstance(data, bool):  # an int for Python, not for us
        return kind is bool
    if kind not in (int, float):
        return isinstance(kind, type) and isinstance(data, kind)
    return isinstance(data, int if kind is int else int | float) and is_plain(data)


def is_plain(data: Any, depth: int = MAX_DEPTH) -> bool:
    """Whether `data` is plain JSON: at most `depth` levels, every number finite and below `MAX_INTEGER`."""
    if isinstance(data, dict):
        return depth > 0 and all(is_plain(item, depth - 1) for item in data.values())
    if isinstance(data, list):
        return depth > 0 and all(is_plain(item, depth - 1) for item in data)
    if isinstance(data, float):
        return math.isfinite(data)
    return isinstance(data, str | bool | None) or abs(data) < MAX_INTEGER
