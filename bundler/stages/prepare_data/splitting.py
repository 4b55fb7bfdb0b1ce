"""Select the samples of a part by their positions alone, before anything is decoded."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from bundler.model.errors import UsageError
from bundler.stages.prepare_data.dataset import Wanted
from bundler.stages.prepare_data.spec import Options


def belongs(position: int, options: Options) -> bool:
    """Whether the sample at `position` is in the part: one of every `options.every` is held out.

    Its place changes pseudo-randomly from block to block: otherwise samples whose names alternate between kinds would
    be judged by one kind alone.
    """
    if options.part == "all":
        return True
    block, place = divmod(position, options.every)
    chosen = zlib.crc32(block.to_bytes(8, "little")) % options.every if block else 0  # so that a few samples have one
    return (place == chosen) == (options.part == "held-out")


def choose_positions(total: int, options: Options) -> Sequence[int]:
    """At most `options.limit` positions of `total` samples, in order, spread evenly. Raises `UsageError` for none."""
    found = range(total) if options.part == "all" else [i for i in range(total) if belongs(i, options)]
    if total and not found:
        what = "the only sample is held out" if total == 1 else f"all {total} samples are held out"
        hint = "give more data, or other data for the accuracy with --samples"
        raise UsageError(f"no sample is left for calibration: {what} to judge the accuracy", hint=hint)
    if 0 < options.limit < len(found):
        return [found[index * len(found) // options.limit] for index in range(options.limit)]
    return found


def wanted_positions(total: int | None, options: Options) -> tuple[Wanted, int | None]:
    """The wanted positions and their number (None where it is known only at the end)."""
    if total is None:
        return (lambda position: belongs(position, options)), None
    chosen = frozenset(choose_positions(total, options))
    return chosen.__contains__, len(chosen)
