"""Settings of a call, whatever it makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from bundler.model.cache import CacheChoice
from bundler.model.options import Option


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The cache, the parallelism and the sandbox of a call; a command has those that apply to it."""

    sandbox: Annotated[
        bool,
        Option(
            "--sandbox",
            variable="BUNDLER_SANDBOX",
            help="Run models and bundles without a network; they read only model, data and cache (Linux, bubblewrap).",
        ),
    ] = False
    cache: Annotated[
        str | None,
        Option(
            "--cache",
            metavar="DIR|URL",
            variable="BUNDLER_CACHE",
            help="Cache of finished steps: a folder, or the URL (s3://…) of a shared cache (docs/safety.md).",
            default="the user's cache folder",
        ),
    ] = None
    cache_readonly: Annotated[
        bool,
        Option(
            "--cache-readonly",
            variable="BUNDLER_CACHE_READONLY",
            help="Read the cache without writing to it; new results are kept for this run only.",
        ),
    ] = False
    jobs: Annotated[
        int, Option("--jobs", "-j", least=1, most=256, help="Number of steps and builds that run at once.")
    ] = 2

    @property
    def cache_choice(self) -> CacheChoice | str | None:
        """What `open_cache` takes; without a word of the caller's the environment says whether it may be written."""
        return CacheChoice(self.cache, readonly=True) if self.cache_readonly else self.cache
