"""What all kinds of data look like to the stage: named samples, each loaded when it is its turn."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

from bundler.model.preprocessing import Record
from bundler.model.stage import Note
from bundler.onnxkit.value_files import Value

Load = Callable[[], Mapping[str, Value]]
Wanted = Callable[[int], bool]
Samples = Generator[tuple[str, Load], None, None]
Take = Callable[[Wanted], Samples]


class UnreadableError(Exception):
    """One sample cannot be used; the text says why. It is told with all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """`take` goes through the samples whose position is wanted, in order; nothing is decoded before it is loaded.

    `total` is None where only the end tells. `seed` and `sizes` are for synthetic data, `record` for what is
    preprocessed.
    """

    total: int | None
    take: Take
    record: Record | None = None
    notes: tuple[Note, ...] = ()
    seed: int | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)


def taker(names: Sequence[str], load: Callable[[int], Mapping[str, Value]]) -> Take:
    """`DataSet.take` for samples that can be loaded by position."""

    def take(wanted: Wanted) -> Samples:
        for position, name in enumerate(names):
            if wanted(position):
                yield name, lambda position=position: load(position)  # type: ignore[misc]

    return take
