"""Sizes at which people use models, beyond the small ones that a search tries first: at these, an error that grows with
the size shows, and one that begins there. What they cost is counted from the graph, never measured, so that every
machine chooses the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from onnx import ModelProto

from bundler.model.free_dimensions import FreeDimension, Key, free_dimensions
from bundler.model.golden_inputs import TriedDimension
from bundler.onnxkit.other_sizes import Changes, OtherSizes
from bundler.onnxkit.seeded_inputs import Maker
from bundler.onnxkit.size_search import SizeSearch
from bundler.onnxkit.value_files import count_bytes
from bundler.onnxkit.workload import count_multiplications

LENGTHS: Final = (32, 128, 256)
"""Tokens or frames."""
PICTURES: Final[Mapping[int, tuple[tuple[int, ...], ...]]] = {
    1: ((192,), (320,), (640,)),
    2: ((48, 192), (224, 224), (512, 512), (640, 640)),
}
"""Heights and widths, by the number of open axes: a line of text, and the usual squares. One open axis is most
often the width of such a line."""
_MAX_REFUSED: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many samples of larger sizes a set has at most, and what all of them may cost."""

    samples: int
    multiplications: int
    byte_size: int


LARGEST: Final = Limits(samples=1, multiplications=1_500_000_000, byte_size=2 << 20)
"""One sample, as large as is affordable: a quarter of what all small ones may cost."""
SEVERAL: Final = Limits(samples=8, multiplications=6_000_000_000, byte_size=4 << 20)
"""For a precision: up to as many as there are small samples, so that the figures over all samples are of both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Larger:
    """The makers of samples with larger sizes, and the multiplications of the most expensive one."""

    makers: tuple[Maker, ...] = ()
    multiplications: int = 0


@dataclass(slots=True, kw_only=True)
class _Purse:
    """What is left of the limits; `floor` are multiplications for each byte of the inputs, where a graph whose sizes
    cannot be inferred seems to cost nothing.
    """

    structure: ModelProto
    floor: float
    multiplications: int
    byte_size: int

    def price(self, maker: Maker) -> int:
        counted = count_multiplications(self.structure, maker.shapes)
        return max(counted, int(self.floor * maker.count_bytes()))

    def pay(self, multiplications: int, byte_size: int) -> bool:
        if multiplications > self.multiplications or byte_size > self.byte_size:
            return False
        self.multiplications -= multiplications
        self.byte_size -= byte_size
        return True


def find_larger(search: SizeSearch, base: Maker, others: OtherSizes, structure: ModelProto, limits: Limits) -> Larger:
    """The larger sizes that the model accepts within `limits`: the largest where one sample is wanted, else from the
    smallest on, and again from the largest while anything is left.
    """
    changes = larger_changes(base, others)
    floor = count_multiplications(structure, base.shapes) / max(base.count_bytes(), 1)
    purse = _Purse(
        structure=structure,
        floor=floor,
        multiplications=limits.multiplications,
        byte_size=limits.byte_size,
    )
    ordered = changes if limits.samples > 1 else changes[::-1]
    found = list(_accepted(search, base, ordered, purse, limits.samples))
    makers = [maker for maker, _, _ in found]
    for maker, price, byte_size in found[::-1] * limits.samples:
        if len(makers) < limits.samples and purse.pay(price, byte_size):
            makers.append(maker)
    return Larger(makers=tuple(makers), multiplications=max((price for _, price, _ in found), default=0))


def _accepted(
    search: SizeSearch, base: Maker, ordered: Sequence[Changes], purse: _Purse, most: int
) -> Iterator[tuple[Maker, int, int]]:
    """Each maker whose sizes the model accepts, its multiplications and its bytes. Few refusals say enough: such a
    model often has one size only.
    """
    found = refused = 0
    for changes in ordered:
        if found == most or refused == _MAX_REFUSED or search.is_over:
            return
        maker = replace(base, changes=changes)
        price, byte_size = purse.price(maker), maker.count_bytes()
        if price > purse.multiplications or byte_size > purse.byte_size:
            continue
        search.report(0.0, "trying larger sizes")
        outputs = search.attempt(replace(maker, plain=True))
        if outputs is None:
            refused += 1
        elif purse.pay(price, byte_size := byte_size + count_bytes(outputs)):
            found += 1
            yield maker, price, byte_size


def larger_changes(base: Maker, others: OtherSizes) -> list[Changes]:
    """Sizes of all open axes of pictures and of all open lengths, the smallest first; those that hold no size beyond
    the ones that ran are omitted. Dimensions whose range is declared have its ends tried already, and those that run at
    one size only have no other.
    """
    fixed = {_key(item) for item in others.dimensions if item.only_size is not None}
    open_ones = (item for item in free_dimensions(base.signature) if item.key not in fixed)
    free = [item for item in open_ones if item.key not in base.ranges]
    largest = {_key(item): max(item.sizes) for item in others.dimensions}
    places = [_sizes_of(free, place) for place in range(max(len(LENGTHS), *map(len, PICTURES.values())))]
    found = [changes for changes in places if any(size > largest.get(key, 0) for key, size in changes.items())]
    return [changes for place, changes in enumerate(found) if changes not in found[:place]]


def _key(item: TriedDimension) -> Key:
    return item.symbol or (item.port, item.axis)


def _sizes_of(free: Sequence[FreeDimension], place: int) -> dict[Key, int]:
    """The sizes at one place of each table; a shorter one's last is repeated."""
    length = LENGTHS[min(place, len(LENGTHS) - 1)]
    changes: dict[Key, int] = {item.key: length for item in free if item.role == "length"}
    for port in dict.fromkeys(item.port for item in free if item.role == "space"):
        axes = [item.key for item in free if item.role == "space" and item.port == port]
        if len(axes) in PICTURES:
            sizes = PICTURES[len(axes)]
            changes |= dict(zip(axes, sizes[min(place, len(sizes) - 1)], strict=True))
    return changes
