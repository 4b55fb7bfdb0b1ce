"""Seeded inputs that fit a signature: the same values for a seed on every machine."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from bundler.model.errors import ModelError
from bundler.model.free_dimensions import (
    Key,
    Sizes,
    assign_sizes,
    dimension_key,
    free_dimensions,
    tensor_type,
    wanted_ports,
)
from bundler.model.shapes import SizeRange
from bundler.model.signature import Port, Signature, ValueType, describe_type, find_mask
from bundler.onnxkit.elements import element_named
from bundler.onnxkit.known_words import Words, draw_words
from bundler.onnxkit.seeded_values import (
    WORDS,
    Shape,
    draw_floats,
    draw_integers,
    draw_lengths,
    draw_mask,
    draw_scenes,
    selector_bit,
)
from bundler.onnxkit.tree_thresholds import Thresholds, draw_around
from bundler.onnxkit.value_files import Value

_LENGTHS: Final = re.compile(r"len(gth)?s?$", re.IGNORECASE)
_DEFAULT_BOUND: Final = 8
"""Upper bound of integers without other hints: small enough to be an index into most tables."""
_SEQUENCE_ITEMS: Final = 2
_WORD_BYTES: Final = 8
_BYTE_VALUES: Final = 256

Integers = Literal["implied", "bits", "ones"]
"""How integers without hints from the graph are generated: below `_DEFAULT_BOUND`, 0 and 1, or all ones. The last two
omit the constants that the model compares with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueHints:
    """What the graph implies for the values of an input: for integers an upper bound, or constants that they are
    compared with, or that they are `masks`; for the columns of tables the thresholds of trees; for texts the words that
    the model knows.
    """

    bounds: Mapping[str, int] = field(default_factory=dict)
    compared: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    thresholds: Mapping[str, Thresholds] = field(default_factory=dict)
    words: Mapping[str, Words] = field(default_factory=dict)
    masks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """Generates one sample's inputs, at the guessed `sizes`, with those that the model's errors `named` and then
    `changes` over them. `plain` ones have no padding, no shorter lengths, and take one branch of every condition.
    Dimensions with `ranges` have their best size, until changed.
    """

    signature: Signature
    sizes: Sizes
    hints: ValueHints
    integers: Integers = "implied"
    named: Mapping[Key, int] = field(default_factory=dict)
    changes: Mapping[Key, int] = field(default_factory=dict)
    plain: bool = False
    ranges: Mapping[Key, SizeRange] = field(default_factory=dict)

    @property
    def assigned(self) -> dict[Key, int]:
        """The size of every free dimension."""
        best = {key: bounds.best for key, bounds in self.ranges.items()}
        return assign_sizes(self.signature, self.sizes, {**best, **self.named, **self.changes})

    @property
    def longest(self) -> int:
        """The size of the longest dimension that looks like a length."""
        assigned = self.assigned
        found = [assigned[item.key] for item in free_dimensions(self.signature) if item.role == "length"]
        return max(found, default=self.sizes.length)

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shape of every input's tensor."""
        assigned = self.assigned
        return {port.name: self._shape(port, assigned) for port in wanted_ports(self.signature)}

    def _shape(self, port: Port, assigned: Mapping[Key, int]) -> Shape:
        shape = tensor_type(port.type).shape or ()
        return tuple(
            size if isinstance(size, int) else assigned[dimension_key(port.name, axis, size)]
            for axis, size in enumerate(shape)
        )

    def count_bytes(self) -> int:
        """Bytes of a sample's tensors, known before any is generated."""
        shapes = self.shapes
        return sum(_port_bytes(port, shapes[port.name]) for port in wanted_ports(self.signature))

    def make(self, seed: int, index: int) -> dict[str, Value]:
        """The inputs of sample number `index`. Optional inputs are left out."""
        drawing = _Drawing(self, 0 if self.plain else index, np.random.Generator(np.random.PCG64([seed, index])))
        shapes = self.shapes
        return {port.name: drawing.value(port.type, port, shapes[port.name]) for port in wanted_ports(self.signature)}


def _port_bytes(port: Port, shape: Shape) -> int:
    """An empty axis counts as one: temporary arrays for an empty tensor may be as long as its other axes."""
    kind = tensor_type(port.type)
    if kind.kind != "tensor" or kind.element_type is None:
        return 0
    each = _WORD_BYTES if kind.element_type == "str" else element_named(kind.element_type).dtype.itemsize
    return math.prod(max(size, 1) for size in shape) * each * (_SEQUENCE_ITEMS if port.type.kind == "sequence" else 1)


class _Drawing:
    """The values of one sample, drawn in the order of the inputs."""

    def __init__(self, maker: Maker, index: int, generator: np.random.Generator) -> None:
        self._maker = maker
        self._index = index
        self._generator = generator
        self._selectors = 0

    def value(self, kind: ValueType, port: Port, shape: Shape) -> Value:
        """A value for an input, or for an item of a sequence."""
        if kind.kind == "sequence" and kind.element is not None:
            return [self.value(kind.element, port, shape) for _ in range(_SEQUENCE_ITEMS)]
        if kind.kind == "map" and kind.element is not None:
            keys: list[Any] = list(WORDS[:3]) if kind.key_type == "str" else list(range(3))
            return dict(zip(keys, self._generator.standard_normal(len(keys)).tolist(), strict=True))
        if kind.kind != "tensor" or kind.element_type is None:
            raise ModelError(
                f"no seeded values can be generated for the input {port.name!r}, which is {describe_type(kind)}",
                hint="give samples with --samples",
            )
        return np.asarray(self._tensor(kind.element_type, shape, port.name))  # a single value is not an array yet

    def _tensor(self, name: str, shape: Shape, port: str) -> np.ndarray:
        element = element_named(name)
        if name == "str":
            texts = np.array(self._generator.choice(WORDS, size=shape), dtype=object)
            known = self._maker.hints.words.get(port)
            return texts if known is None else draw_words(texts, known, self._generator)
        used = find_mask(port, name)
        if used is None and "int" in name and port in self._maker.hints.masks:
            used = True
        if used is not None:
            return self._mask(shape, inverted=not used).astype(element.dtype)
        if name == "bool":
            return self._truths(shape)
        if "int" in name:
            return self._integers(element.dtype, element.bits, shape, port).astype(element.dtype)
        values = np.asarray(draw_floats(shape, self._index, self._generator))
        if port in self._maker.hints.thresholds:
            values = draw_around(values, self._maker.hints.thresholds[port], self._generator)
        return values.astype(np.float32).astype(element.dtype)

    def _mask(self, shape: Shape, *, inverted: bool) -> np.ndarray:
        """Ones for used places; where the name of a Boolean input says padding, True marks unused ones."""
        kept = np.ones(shape, bool) if self._maker.plain else draw_mask(shape, self._index, self._generator)
        return (~kept if inverted else kept).astype(np.uint8)

    def _truths(self, shape: Shape) -> np.ndarray:
        if math.prod(shape) != 1:
            return self._generator.integers(0, 2, shape).astype(bool)
        return np.full(shape, not selector_bit(self._index, self._next_selector()))

    def _next_selector(self) -> int:
        self._selectors += 1
        return self._selectors - 1

    def _integers(self, dtype: np.dtype, bits: int, shape: Shape, port: str) -> np.ndarray:
        mode, hints = self._maker.integers, self._maker.hints
        if mode == "ones" and port not in hints.bounds:
            return np.ones(shape, np.int64)
        if _LENGTHS.search(port):
            return self._lengths(shape)
        limit = 1 << (bits - (0 if dtype.kind == "u" else 1))
        bound = min(hints.bounds.get(port) or self._default_bound(dtype), limit)
        compared = self._compared(port, 0 if dtype.kind == "u" else -limit, limit) if mode == "implied" else ()
        if compared and math.prod(shape) == 1:
            place = (self._index >> 1) + self._next_selector()
            return np.full(shape, compared[place % len(compared)], np.int64)
        scenes = draw_scenes(shape, self._index, self._generator) if bound == _BYTE_VALUES else None
        if scenes is not None:
            return np.asarray(np.rint(scenes * (_BYTE_VALUES - 1)), np.int64)
        return draw_integers(shape, bound, compared, self._generator)

    def _default_bound(self, dtype: np.dtype) -> int:
        if dtype == np.uint8:
            return _BYTE_VALUES
        return 2 if self._maker.integers == "bits" else _DEFAULT_BOUND

    def _compared(self, port: str, least: int, limit: int) -> tuple[int, ...]:
        """The constants in the range of the type and, for indices, of the table."""
        bound = self._maker.hints.bounds.get(port)
        least, end = (0, min(bound, limit)) if bound else (least, limit)
        return tuple(value for value in self._maker.hints.compared.get(port, ()) if least <= value < end)

    def _lengths(self, shape: Shape) -> np.ndarray:
        """Row lengths equal to the size of the tensors beside them."""
        full = self._maker.longest
        drawn = draw_lengths(math.prod(shape), full, self._index, self._generator).reshape(shape)
        return np.full(shape, full, np.int64) if self._maker.plain else drawn
