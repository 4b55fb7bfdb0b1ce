"""`bundler cache trim`."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from bundler.cli.options import CacheOnly, Json
from bundler.cli.printing import echo, print_json
from bundler.execution.cache import open_cache
from bundler.execution.upkeep import trim
from bundler.model.errors import UsageError
from bundler.support.text import format_bytes

EPILOG = "Example:\n\n  bundler cache trim --to 5GB --older 30d"
_SIZES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_AGES = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def run(
    *,
    to: Annotated[
        str | None, typer.Option("--to", metavar="SIZE", help="Largest size of the cache afterwards (5GB, 500MB).")
    ] = None,
    older: Annotated[
        str | None,
        typer.Option("--older", metavar="AGE", help="Remove entries that were not used for this long (30d, 12h)."),
    ] = None,
    settings: CacheOnly,
    json: Json = False,
) -> None:
    """Trim and print the freed bytes. Raises `UsageError` when no limit is given."""
    if to is None and older is None:
        raise UsageError("no limit given", hint="for example: bundler cache trim --to 5GB, or --older 30d")
    size = None if to is None else parse_size(to)
    age = None if older is None else parse_age(older)
    result = trim(open_cache(settings.cache_choice), size=size, age=age)
    if json:
        print_json(result)
    else:
        echo(f"removed {format_bytes(result.removed)}, {format_bytes(result.left)} left")


def parse_size(text: str) -> int:
    """Bytes from `5GB`, `500MB` or `1000B` (decimal units). Raises `UsageError`, for a number alone, too: a `5` that
    meant gigabytes would empty the cache.
    """
    found = re.fullmatch(r"(\d{1,15}(?:\.\d+)?)\s*([KMGT]?B)?", text.strip(), re.IGNORECASE | re.ASCII)
    if not found or (not found[2] and float(found[1])):
        raise UsageError(f"{text!r} is not a size", hint="write it as 5GB, 500MB or 100KB")
    return int(float(found[1]) * _SIZES[(found[2] or "B").upper()])


def parse_age(text: str) -> float:
    """Seconds from `30d`, `12h`, `45m`, `2w`. Raises `UsageError`."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d+)?)\s*([smhdw])", text.strip(), re.ASCII)
    if not found:
        raise UsageError(f"{text!r} is not an age", hint="write it as 30d, 12h or 45m")
    return float(found[1]) * _AGES[found[2]]
