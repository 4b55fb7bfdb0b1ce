"""The shapes of the first sample that a user gave, from the heads of its arrays: what hints on sizes go by."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_HEAD_BYTES: Final = 4096
"""The header in front of an array has some hundred bytes."""
_MAX_ARRAYS: Final = 256
_SHAPE: Final = re.compile(rb"\x93NUMPY.*?'shape': \(([0-9, ]{0,400})\)", re.DOTALL)
"""As NumPy writes it (`numpy.lib.format`)."""


def read_first_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Shapes by input in the first .npz at `path`; in one file of many samples, each shape begins with their number.
    Empty for other kinds, and for damaged files: the step that reads the samples reports those.
    """
    archive = min(path.glob("*.npz"), default=path) if path.is_dir() else path
    try:
        if not archive.is_file():  # reading a pipe may never end
            return {}
        with zipfile.ZipFile(archive) as members:
            return dict(_read_shapes(members))
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error):
        return {}


def _read_shapes(members: zipfile.ZipFile) -> Iterator[tuple[str, tuple[int, ...]]]:
    for name in members.namelist()[:_MAX_ARRAYS]:
        with members.open(name) as stream:
            found = _SHAPE.match(stream.read(_HEAD_BYTES))
        if found is not None:
            yield name.removesuffix(".npy"), tuple(int(size) for size in found[1].split(b",") if size.strip())
