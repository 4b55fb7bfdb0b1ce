"""Which cache the user chose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CacheChoice:
    """`place` is a folder or a URL, None for the default; `readonly` says that nothing may be written to it."""

    place: str | None = None
    readonly: bool = False
