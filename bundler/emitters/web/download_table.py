"""The README's table of the first visit's downloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bundler.model.proof import Download

_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadRow:
    """What a first visit fetches, in words."""

    variant: str
    build: str
    size: str
    gzip: str
    brotli: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadTable:
    """One row a variant and build of the runtime."""

    downloads: tuple[DownloadRow, ...]


def describe_downloads(downloads: Sequence[Download]) -> DownloadTable:
    """The README's table of the first visit's downloads."""
    rows = (
        DownloadRow(
            variant=download.variant,
            build=download.build,
            size=_megabytes(download.size),
            gzip=_megabytes(download.gzip),
            brotli=_megabytes(download.brotli),
        )
        for download in downloads
    )
    return DownloadTable(downloads=tuple(rows))


def _megabytes(size: int) -> str:
    return f"{size / _MEGABYTE:.1f} MB"
