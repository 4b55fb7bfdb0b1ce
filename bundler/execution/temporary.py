"""Temporary folders, inside the scratch folder of the cache in use: after a process was killed, the next one removes
them. Without a cache that can be written to, they are in the system's folder.
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
    """While the block runs, this process makes its temporary folders in the scratch folder that `find` returns."""
    _offered.append(find)
    try:
        yield
    finally:
        _offered.remove(find)


def temporary_folder(
    kind: str, *, otherwise: Path | None = None, short: bool = False
) -> tempfile.TemporaryDirectory[str]:
    """A folder that is removed at the end of the block. Without a scratch folder it is made in `otherwise`. A `short`
    one has a short path, if need be outside of the cache.
    """
    place = find_offered() or otherwise
    if short:
        place = _find_short(place)
    return _TemporaryFolder(dir=place, prefix=f"bundler-{kind}-", ignore_cleanup_errors=True)


class _TemporaryFolder(tempfile.TemporaryDirectory[str]):
    """A temporary folder whose removal does not fail on folders nested deeper than Python can recurse."""

    def cleanup(self) -> None:
        try:
            super().cleanup()
        except RecursionError:
            remove_folder(Path(self.name))


def find_offered() -> Path | None:
    """The scratch folder in use; None without one."""
    if not _offered:
        return None
    with contextlib.suppress(BundlerError, OSError):
        return _offered[-1]().folder
    return None


def _find_short(place: Path | None) -> Path | None:
    """`place` if its path is short, else the system's folder, else `/tmp`; None: the system's default."""
    for candidate in (place, Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108 a random name for us alone
        if candidate and len(os.fsencode(candidate)) <= _LONGEST_SHORT and os.access(candidate, os.W_OK | os.X_OK):
            return candidate
    return None
