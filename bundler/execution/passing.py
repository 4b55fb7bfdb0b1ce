"""Folders that are needed for a while: inside the scratch of the cache that is in use, so that of a process that was
killed the next one removes them. Where there is none (a cache that cannot be written to), the system's folder serves.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from bundler.execution.scratch import Scratch, remove_folder
from bundler.model.errors import BundlerError

_LONGEST_SHORT: Final = 37
"""Bytes of a path under which Chromium can still make its socket: 107 (`sun_path` of Linux, less its closing zero),
less the name of our folder (25) and what Chromium adds (`/org.chromium.Chromium.XXXXXX/SingletonSocket`, 45).
"""
_offered: list[Callable[[], Scratch]] = []


@contextlib.contextmanager
def offer_scratch(find: Callable[[], Scratch]) -> Iterator[None]:
    """Let the folders of this process be made in what `find` gives, for as long as the block runs."""
    _offered.append(find)
    try:
        yield
    finally:
        _offered.remove(find)


def passing_folder(
    kind: str, *, otherwise: Path | None = None, short: bool = False
) -> tempfile.TemporaryDirectory[str]:
    """A folder that is removed with the block. `otherwise` is where it is made when no scratch is there; a `short` one
    stands where its path is short, be it outside.
    """
    place = _find_place() or otherwise
    if short:
        place = _find_short(place)
    return _PassingFolder(dir=place, prefix=f"bundler-{kind}-", ignore_cleanup_errors=True)


class _PassingFolder(tempfile.TemporaryDirectory[str]):
    """One that goes however deep the folders are that a stranger's program has made in it."""

    def cleanup(self) -> None:
        try:
            super().cleanup()
        except RecursionError:
            remove_folder(Path(self.name))


def _find_place() -> Path | None:
    if not _offered:
        return None
    with contextlib.suppress(BundlerError, OSError):
        return _offered[-1]().folder
    return None


def _find_short(place: Path | None) -> Path | None:
    """`place` where its path is short, else the system's folder, else `/tmp`; None leaves it to the system."""
    for candidate in (place, Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108 a random name for us alone
        if candidate and len(os.fsencode(candidate)) <= _LONGEST_SHORT and os.access(candidate, os.W_OK | os.X_OK):
            return candidate
    return None
