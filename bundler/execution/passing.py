"""Folders that are needed for a while: inside the scratch of the cache that is in use, so that of a process that was
killed the next one removes them. Where there is none (a cache that cannot be written to), the system's folder serves.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from bundler.execution.scratch import Scratch
from bundler.model.errors import BundlerError

_LONGEST_SHORT: Final = 60
"""Characters of a path in which programs can still make their sockets (108 bytes, with names of their own)."""
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
    never has a long path.
    """
    place = _find_place()
    if place is None or (short and len(str(place)) > _LONGEST_SHORT):
        place = otherwise
    return tempfile.TemporaryDirectory(dir=place, prefix=f"bundler-{kind}-", ignore_cleanup_errors=True)


def _find_place() -> Path | None:
    if not _offered:
        return None
    with contextlib.suppress(BundlerError, OSError):
        return _offered[-1]().folder
    return None
