"""`bundler cache show`."""

from __future__ import annotations

from bundler.cli.options import CacheOnly, Json
from bundler.cli.printing import echo, print_json
from bundler.execution.cache import open_cache
from bundler.execution.upkeep import usage
from bundler.support.text import format_bytes

EPILOG = "Example:\n\n  bundler cache show --json"


def run(*, settings: CacheOnly, json: Json = False) -> None:
    """Print where the cache is and what each part of it holds."""
    cache = open_cache(settings.cache_choice)
    parts = usage(cache)
    total = sum(part.size for part in parts)
    if json:
        print_json({"root": str(cache.place), "bytes": total, "parts": parts})
        return
    echo(f"{cache.place}  {format_bytes(total)}")
    for part in parts:
        echo(f"  {part.name:<13} {format_bytes(part.size):>9}  {part.entries}")
