"""The first 64 bytes of an engine: the version that built it, its length, and its devices.

The layout is not documented. It was read from engines of TensorRT for RTX 1.7.1: `vtrt` at 0, the file's length at 16,
the library's version at 24 (four bytes), and at 32 one bit for each compute capability.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from bundler.model.errors import StageError

HEADER_BYTES: Final = 64
"""The part of an engine that the runtime's provider reads to decide whether a device can run it."""
_LAYOUT: Final = struct.Struct("<4s12xQ4B4xI")
_MAGIC: Final = b"vtrt"


def check_engine(path: Path, version: str, mask: int) -> bytes:
    """The header of the engine at `path`, built by the library `version` for the devices of `mask`. Raises `StageError`
    for a file that is empty, truncated, or for other devices.
    """
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(HEADER_BYTES)
    if size <= HEADER_BYTES:
        raise _describe_mismatch(f"it has {size} bytes")
    magic, declared, *release, found = _LAYOUT.unpack_from(head)
    if magic != _MAGIC:
        raise _describe_mismatch(f"it begins with {magic!r}")
    if declared != size:
        raise _describe_mismatch(f"it has {size} bytes, and its header declares {declared}")
    if ".".join(map(str, release)) != version:
        raise _describe_mismatch(f"it was built by TensorRT for RTX {'.'.join(map(str, release))}, not {version}")
    if found != mask:
        raise _describe_mismatch(f"it is for the devices {found:#x}, not {mask:#x}")
    return head


def _describe_mismatch(reason: str) -> StageError:
    hint = "build again; if it fails again, compile on the device: compile = { here = false }"
    return StageError("TensorRT for RTX wrote an invalid engine", details=(reason,), hint=hint)
