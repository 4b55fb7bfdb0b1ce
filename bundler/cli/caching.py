"""What `bundler cache` does and prints."""

from __future__ import annotations

import re

from bundler.cli.printing import echo, print_json
from bundler.execution.cache import open_cache
from bundler.execution.upkeep import clear, trim, usage
from bundler.model.errors import UsageError
from bundler.support.text import format_bytes

_SIZES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_AGES = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def show_cache(url: str | None, *, as_json: bool) -> None:
    """Print where the cache is and what each part of it holds."""
    cache = open_cache(url)
    parts = usage(cache)
    total = sum(part.size for part in parts)
    if as_json:
        print_json({"root": str(cache.place), "bytes": total, "parts": parts})
        return
    echo(f"{cache.place}  {format_bytes(total)}")
    for part in parts:
        echo(f"  {part.name:<13} {format_bytes(part.size):>9}  {part.entries}")


def trim_cache_to(url: str | None, *, to: str | None, older: str | None, as_json: bool) -> None:
    """Trim and print what went. Raises `UsageError` when neither bound is given."""
    if to is None and older is None:
        raise UsageError("no bound given", hint="for example: bundler cache trim --to 5GB, or --older 30d")
    size = None if to is None else parse_size(to)
    age = None if older is None else parse_age(older)
    result = trim(open_cache(url), size=size, age=age)
    if as_json:
        print_json(result)
    else:
        echo(f"removed {format_bytes(result.removed)}, {format_bytes(result.left)} left")


def clear_whole_cache(url: str | None, *, as_json: bool) -> None:
    """Clear and print how much that freed."""
    freed = clear(open_cache(url))
    if as_json:
        print_json({"removed": freed})
    else:
        echo(f"removed {format_bytes(freed)}")


def parse_size(text: str) -> int:
    """Bytes from `5GB`, `500MB` or `1000B` (decimal units). Raises `UsageError`, for a number alone, too: a `5` that
    meant gigabytes would empty the cache.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?B)?", text.strip(), re.IGNORECASE | re.ASCII)
    if not found or (not found[2] and float(found[1])):
        raise UsageError(f"{text!r} is no size", hint="write it as 5GB, 500MB or 100KB")
    return int(float(found[1]) * _SIZES[(found[2] or "B").upper()])


def parse_age(text: str) -> float:
    """Seconds from `30d`, `12h`, `45m`, `2w`. Raises `UsageError`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text.strip(), re.ASCII)
    if not found:
        raise UsageError(f"{text!r} is no age", hint="write it as 30d, 12h or 45m")
    return float(found[1]) * _AGES[found[2]]
