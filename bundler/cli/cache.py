"""`bundler cache`: what is kept, and how to keep less."""

from __future__ import annotations

from typing import Annotated

import typer

from bundler.cli.options import Cache, Json

app = typer.Typer(no_args_is_help=True)


@app.command(epilog="Example:\n\n  bundler cache show --json")
def show(*, cache: Cache = None, json: Json = False) -> None:
    """Show where the cache is and what it holds."""
    from bundler.cli.caching import show_cache  # noqa: PLC0415 - keeps --help quick

    show_cache(cache, as_json=json)


@app.command(epilog="Example:\n\n  bundler cache trim --to 5GB --older 30d")
def trim(
    *,
    to: Annotated[str | None, typer.Option("--to", metavar="SIZE", help="Largest size to keep (5GB, 500MB).")] = None,
    older: Annotated[
        str | None, typer.Option("--older", metavar="AGE", help="Remove what was not used for so long (30d, 12h).")
    ] = None,
    cache: Cache = None,
    json: Json = False,
) -> None:
    """Remove what was not used for the longest time."""
    from bundler.cli.caching import trim_cache_to  # noqa: PLC0415 - keeps --help quick

    trim_cache_to(cache, to=to, older=older, as_json=json)


@app.command()
def clear(*, cache: Cache = None, json: Json = False) -> None:
    """Remove the whole cache; it must bear our tag."""
    from bundler.cli.caching import clear_whole_cache  # noqa: PLC0415 - keeps --help quick

    clear_whole_cache(cache, as_json=json)
