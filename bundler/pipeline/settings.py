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
            help="Run what computes on models and bundles without a network and with nothing of your files but the "
            "model, the data and the cache to read (Linux, with bubblewrap).",
        ),
    ] = False
    cache: Annotated[
        str | None,
        Option(
            "--cache",
            metavar="DIR|URL",
            variable="BUNDLER_CACHE",
            help="Where finished steps are kept: a folder of your own, or a URL (s3://…) of a cache that a team "
            "shares. A shared one needs the key of those who write it, in BUNDLER_CACHE_KEY or the file "
            "BUNDLER_CACHE_KEY_FILE.",
            default="the user's cache folder",
        ),
    ] = None
    cache_readonly: Annotated[
        bool,
        Option(
            "--cache-readonly",
            variable="BUNDLER_CACHE_READONLY",
            help="Take what the cache has and write nothing to it: what is new is kept for this run alone or, with a "
            "shared cache, in your own.",
        ),
    ] = False
    jobs: Annotated[int, Option("--jobs", "-j", least=1, most=256, help="Steps and builds that run at once.")] = 2

    @property
    def cache_choice(self) -> CacheChoice | str | None:
        """What `open_cache` takes; without a word of the caller's the environment says whether it may be written."""
        return CacheChoice(self.cache, readonly=True) if self.cache_readonly else self.cache
