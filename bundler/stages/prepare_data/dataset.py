"""The form of all kinds of data for the stage: named samples, each loaded on demand."""

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
    """One sample cannot be used, for the reason in the text. It is reported with all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """`take` iterates over the samples at the wanted positions, in order; nothing is decoded before it is loaded.

    `total` is None where it is known only at the end. `seed` and `sizes` are for synthetic data, `record` for
    preprocessed data.
    """

    total: int | None
    take: Take
    record: Record | None = None
    notes: tuple[Note, ...] = ()
    seed: int | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)


def taker(names: Sequence[str], load: Callable[[int], Mapping[str, Value]]) -> Take:
    """`DataSet.take` for samples that are loaded by position."""

    def take(wanted: Wanted) -> Samples:
        for position, name in enumerate(names):
            if wanted(position):
                yield name, lambda position=position: load(position)  # type: ignore[misc]

    return take
