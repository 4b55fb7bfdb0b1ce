"""Seeded inputs that fit a signature: the same values for the same seed on every machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from bundler.model.errors import ModelError
from bundler.model.signature import Dimension, Port, Signature, ValueType, describe_type
from bundler.workbench.elements import element_named
from bundler.workbench.value_files import Value

_WORDS: Final = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel")
_LENGTH_NAMES: Final = re.compile(r"seq|len|past|token|time|frame|step", re.IGNORECASE)
_BATCH_NAMES: Final = re.compile(r"batch|^n$|^b$", re.IGNORECASE)
_DEFAULT_BOUND: Final = 8
"""Integers of which nothing is known stay below this: small enough to be an index into most things."""
_SEQUENCE_ITEMS: Final = 2
_IMAGE_RANK: Final = 4
_MOST_CHANNELS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """One guess at the dynamic dimensions, by what a dimension seems to be. `integers` bounds the integers of which
    nothing better is known, or is None for inputs of ones.
    """

    batch: int = 1
    channel: int = 3
    space: int = 224
    length: int = 16
    integers: int | None = _DEFAULT_BOUND


_SHAPES: Final = (
    Sizes(),
    Sizes(space=64),
    Sizes(space=32, length=8),
    Sizes(channel=1, space=32, length=32),
    Sizes(channel=1, space=128, length=64),
    Sizes(space=640, length=128),
    Sizes(channel=1, space=1, length=1),
    Sizes(batch=16, length=16),
    Sizes(batch=16000, length=16000),
)
"""Tried in this order until the model runs: what vision, text, classical and audio models take."""


def guesses(signature: Signature) -> Iterator[Sizes]:
    """Guesses worth trying: shapes vary only where one is dynamic, integers only where one goes in."""
    shapes = _SHAPES if any(True for _ in _free_dimensions(signature)) else _SHAPES[:1]
    bounds = (_DEFAULT_BOUND, 2, None) if _has_integers(signature) else (_DEFAULT_BOUND,)
    for bound in bounds:
        for shape in shapes:
            yield Sizes(
                batch=shape.batch, channel=shape.channel, space=shape.space, length=shape.length, integers=bound
            )


def _free_dimensions(signature: Signature) -> Iterator[Dimension]:
    for port in signature.inputs:
        yield from (size for size in _tensor_type(port.type).shape or () if not isinstance(size, int))


def _tensor_type(kind: ValueType) -> ValueType:
    return _tensor_type(kind.element) if kind.element is not None and kind.kind != "map" else kind


def _has_integers(signature: Signature) -> bool:
    return any("int" in (_tensor_type(port.type).element_type or "") for port in signature.inputs)


def assign_dimensions(signature: Signature, sizes: Sizes) -> dict[str, int]:
    """A size for every symbol of the inputs; `a + b` and `a + 1` are taken as the sums that exporters mean by them."""
    assigned: dict[str, int] = {}
    sums: list[str] = []
    for port in signature.inputs:
        shape = _tensor_type(port.type).shape or ()
        for axis, size in enumerate(shape):
            if isinstance(size, str) and size not in assigned:
                if "+" in size:
                    sums.append(size)
                else:
                    assigned[size] = _guess(shape, axis, sizes)
    for text in sums:
        terms = [term.strip() for term in text.split("+")]
        assigned[text] = sum(int(term) if term.isdigit() else assigned.get(term, sizes.length) for term in terms)
    return assigned


def _guess(shape: tuple[Dimension, ...], axis: int, sizes: Sizes) -> int:
    name = shape[axis] or ""
    if isinstance(name, str) and _BATCH_NAMES.search(name):
        return sizes.batch
    if isinstance(name, str) and _LENGTH_NAMES.search(name):
        return sizes.length
    if axis == 0:
        return sizes.batch
    if len(shape) < _IMAGE_RANK:
        return sizes.length
    last = shape[-1]
    channels_last = isinstance(last, int) and last <= _MOST_CHANNELS and axis < len(shape) - 1
    return sizes.space if channels_last or axis > 1 else sizes.channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """Makes the inputs of one sample. `bounds` limits the integers of inputs by name."""

    signature: Signature
    sizes: Sizes
    bounds: Mapping[str, int]

    def make(self, seed: int, index: int) -> dict[str, Value]:
        """The inputs of sample number `index`. Optional inputs are left out."""
        dimensions = assign_dimensions(self.signature, self.sizes)
        generator = np.random.Generator(np.random.PCG64([seed, index]))
        return {
            port.name: self._value(port.type, port, dimensions, generator)
            for port in self.signature.inputs
            if not port.optional and port.type.kind != "optional"
        }

    def _value(
        self, kind: ValueType, port: Port, dimensions: Mapping[str, int], generator: np.random.Generator
    ) -> Value:
        if kind.kind == "sequence" and kind.element is not None:
            return [self._value(kind.element, port, dimensions, generator) for _ in range(_SEQUENCE_ITEMS)]
        if kind.kind == "map" and kind.element is not None:
            keys = list(_WORDS[:3]) if kind.key_type == "str" else list(range(3))
            values = generator.standard_normal(len(keys)).tolist()
            return dict(zip(keys, values, strict=True))
        if kind.kind != "tensor" or kind.element_type is None:
            raise ModelError(
                f"no seeded values can be made for the input {port.name!r}, which is {describe_type(kind)}",
                hint="give samples with --samples",
            )
        shape = kind.shape or ()
        fixed = [
            size if isinstance(size, int) else (dimensions[size] if size else _guess(shape, axis, self.sizes))
            for axis, size in enumerate(shape)
        ]
        return self._tensor(kind.element_type, tuple(fixed), port.name, generator)

    def _tensor(self, name: str, shape: tuple[int, ...], port: str, generator: np.random.Generator) -> np.ndarray:
        element = element_named(name)
        masks = "mask" in port.lower()
        if name == "str":
            return np.array(generator.choice(_WORDS, size=shape), dtype=object)
        if name == "bool":
            return np.ones(shape, bool) if masks else generator.integers(0, 2, shape).astype(bool)
        if "int" in name:
            return self._integers(element.dtype, element.bits, shape, port, generator)
        values = np.ones(shape) if masks else generator.standard_normal(shape)
        return values.astype(np.float32).astype(element.dtype)

    def _integers(
        self, dtype: np.dtype, bits: int, shape: tuple[int, ...], port: str, generator: np.random.Generator
    ) -> np.ndarray:
        if "mask" in port.lower() or (self.sizes.integers is None and port not in self.bounds):
            return np.ones(shape, dtype)
        if re.search(r"len(gth)?s?$", port, re.IGNORECASE):
            return np.full(shape, self.sizes.length, dtype)
        bound = self.bounds.get(port) or (256 if dtype == np.uint8 else self.sizes.integers or 1)
        signed_limit = 1 << (bits - (0 if dtype.kind == "u" else 1))
        return generator.integers(0, min(bound, signed_limit), shape).astype(dtype)
