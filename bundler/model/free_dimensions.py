"""The sizes that a model leaves open, with a guess at the role and a size for each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from bundler.model.shapes import SizeRange
from bundler.model.signature import Dimension, Port, Signature, ValueType

Role = Literal["batch", "channel", "space", "length"]
Key = str | tuple[str, int]
"""A symbol; or, for an axis without a name, its input and its position."""

_LENGTH_NAMES: Final = re.compile(r"seq|len|past|token|time|frame|step", re.IGNORECASE)
_BATCH_NAMES: Final = re.compile(r"batch|^n$|^b$", re.IGNORECASE)
_STATE_NAMES: Final = re.compile(r"state|hidden|cell|^[hc](_?\d+|_?n|_?in)?$", re.IGNORECASE)
_IMAGE_RANK: Final = 4
_STATE_RANK: Final = 3
_MOST_CHANNELS: Final = 4
_MOST_DIGITS: Final = 12
_SHOWN_NAME: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """One guess at the free dimensions, by role."""

    batch: int = 1
    channel: int = 3
    space: int = 64
    length: int = 16

    def of(self, role: Role) -> int:
        """The size of dimensions with this role."""
        return {"batch": self.batch, "channel": self.channel, "space": self.space, "length": self.length}[role]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeDimension:
    """A size that is not fixed, at its first occurrence."""

    key: Key
    role: Role
    port: str
    axis: int

    @property
    def label(self) -> str:
        """Its name in messages: `sequence`, or `image[2]` for an axis that has no name."""
        return shown_name(self.key) if isinstance(self.key, str) else place_label(self.port, self.axis)


def shown_name(name: str) -> str:
    """A name from a model for messages: printable and shortened."""
    shown = name if name.isprintable() else ascii(name)[1:-1]
    return shown if len(shown) <= _SHOWN_NAME else shown[:_SHOWN_NAME] + "…"


def tensor_type(kind: ValueType) -> ValueType:
    """The tensor type inside a type, also inside sequences and optionals."""
    return tensor_type(kind.element) if kind.element is not None and kind.kind != "map" else kind


def wanted_ports(signature: Signature) -> Iterator[Port]:
    """The required inputs."""
    return (port for port in signature.inputs if not port.optional and port.type.kind != "optional")


def free_dimensions(signature: Signature) -> tuple[FreeDimension, ...]:
    """Every free dimension of the required inputs, once; sums of others (`past + sequence`) are not free."""
    found: dict[Key, FreeDimension] = {}
    for port in wanted_ports(signature):
        shape = tensor_type(port.type).shape or ()
        for axis, size in enumerate(shape):
            if isinstance(size, int) or (size is not None and "+" in size):
                continue
            key = dimension_key(port.name, axis, size)
            found.setdefault(key, FreeDimension(key=key, role=_role(shape, axis, port.name), port=port.name, axis=axis))
    return tuple(found.values())


def unnamed_sizes(signature: Signature) -> tuple[tuple[str, int], ...]:
    """The input and the axis of each size without a number or a name."""
    return tuple(
        (port.name, axis)
        for port in signature.inputs
        for axis, size in enumerate(tensor_type(port.type).shape or ())
        if size is None
    )


def unnamed_labels(signature: Signature) -> tuple[str, ...]:
    """`x[0]`, `x[2]`: the labels of the sizes that have no name."""
    return tuple(place_label(port, axis) for port, axis in unnamed_sizes(signature))


def place_label(port: str, axis: int) -> str:
    """`image[2]`, an axis of an input."""
    return f"{shown_name(port)}[{axis}]"


def find_ranges(signature: Signature, ranges: Mapping[str, SizeRange]) -> dict[Key, SizeRange]:
    """The dimensions of the inputs that have one of `ranges`, which are by name, or by position as `x[2]`."""
    keys: dict[str, Key] = {name: name for name in signature.symbols}
    keys |= {place_label(*place): place for place in unnamed_sizes(signature)}
    return {keys[name]: found for name, found in ranges.items() if name in keys}


def dimension_key(port: str, axis: int, size: Dimension) -> Key:
    """The key of a dimension that is not fixed."""
    return size if isinstance(size, str) else (port, axis)


def _role(shape: tuple[Dimension, ...], axis: int, port: str) -> Role:
    name = shape[axis]
    if isinstance(name, str) and _BATCH_NAMES.search(name):
        return "batch"
    if isinstance(name, str) and _LENGTH_NAMES.search(name):
        return "length"
    if axis == 0 or _is_state_batch(shape, axis, port):
        return "batch"
    if len(shape) < _IMAGE_RANK:
        return "length"
    last = shape[-1]
    channels_last = isinstance(last, int) and last <= _MOST_CHANNELS and axis < len(shape) - 1
    return "space" if channels_last or axis > 1 else "channel"


def _is_state_batch(shape: tuple[Dimension, ...], axis: int, port: str) -> bool:
    """The state of a recurrent layer is [layers, batch, features]."""
    if len(shape) != _STATE_RANK or axis != 1 or not isinstance(shape[0], int) or not isinstance(shape[2], int):
        return False
    return shape[0] > 1 or _STATE_NAMES.search(port) is not None


def assign_sizes(signature: Signature, sizes: Sizes, changes: Mapping[Key, int]) -> dict[Key, int]:
    """A size for every free dimension, `changes` over the guess; `a + b` and `a + 1` are the sums that exporters mean
    by them.
    """
    assigned = {item.key: changes.get(item.key, sizes.of(item.role)) for item in free_dimensions(signature)}
    for port in wanted_ports(signature):
        for size in tensor_type(port.type).shape or ():
            if isinstance(size, str) and size not in assigned:
                assigned[size] = sum(_term(term.strip(), assigned, sizes) for term in size.split("+"))
    return assigned


def _term(term: str, assigned: Mapping[Key, int], sizes: Sizes) -> int:
    if term.isdecimal() and len(term) <= _MOST_DIGITS:
        return int(term)
    return assigned.get(term, sizes.length)
