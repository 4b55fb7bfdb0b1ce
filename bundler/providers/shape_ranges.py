"""Ranges of input shapes, as NVIDIA's providers take them in three options: least, best and greatest.

Each is `input:1x3x224x224`, with commas (or semicolons) between inputs; an input that stands several times has several
ranges.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

_ENTRY = re.compile(r"[^:;,\s]{1,200}(?::[^:;,\s]{1,200})*:([0-9]{1,9}(x[0-9]{1,9}){0,15})")

Shapes = dict[str, list[tuple[int, ...]]]


def parse_shapes(text: str) -> Shapes:
    """Sizes by input, in their order. Raises `ValueError`, which says what is expected."""
    found: Shapes = {}
    for entry in (part.strip() for part in re.split("[,;]", text) if part.strip()):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise ValueError(f"expected `input:1x3x224x224`, separated by commas, got {entry[:60]!r}")
        name = entry[: match.start(1) - 1]
        found.setdefault(name, []).append(tuple(int(size) for size in match[1].split("x")))
    return found


def check_ranges(options: Mapping[str, str], keys: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What is wrong with the options `keys` (least, best, greatest), alone and together: the key, and why."""
    given = [key for key in keys if options.get(key)]
    for key in keys:
        if given and key not in given:
            yield key, f"is missing: {', '.join(keys)} belong together"
    shapes: dict[str, Shapes] = {}
    for key in given:
        try:
            shapes[key] = parse_shapes(options[key])
        except ValueError as error:
            yield key, str(error)
    if len(shapes) == len(keys):
        yield from _check_order(shapes, keys)


def _check_order(shapes: Mapping[str, Shapes], keys: Sequence[str]) -> Iterator[tuple[str, str]]:
    for lower, upper in itertools.pairwise(keys):
        if set(shapes[lower]) != set(shapes[upper]):
            yield upper, f"names other inputs than {lower} ({', '.join(sorted(shapes[lower]))[:200]})"
            continue
        for name, sizes in shapes[lower].items():
            if not _is_below(sizes, shapes[upper][name]):
                yield upper, f"is below {lower} for {name[:60]!r}, or has another number of sizes"


def _is_below(lower: Sequence[tuple[int, ...]], upper: Sequence[tuple[int, ...]]) -> bool:
    same = [len(sizes) for sizes in lower] == [len(sizes) for sizes in upper]
    return same and all(
        small <= large
        for small_sizes, large_sizes in zip(lower, upper, strict=True)
        for small, large in zip(small_sizes, large_sizes, strict=True)
    )
