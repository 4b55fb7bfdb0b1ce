"""`bundler cache clear`."""

from __future__ import annotations

from bundler.cli.options import CacheOnly, Json
from bundler.cli.printing import echo, print_json
from bundler.execution.cache import open_cache
from bundler.execution.upkeep import clear
from bundler.support.text import format_bytes

EPILOG = "Example:\n\n  bundler cache clear"


def run(*, settings: CacheOnly, json: Json = False) -> None:
    """Clear and print how much that freed."""
    freed = clear(open_cache(settings.cache_choice))
    if json:
        print_json({"removed": freed})
    else:
        echo(f"removed {format_bytes(freed)}")
