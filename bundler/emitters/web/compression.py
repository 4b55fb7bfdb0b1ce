"""Compressed forms of files, and their sizes; both are kept by digest, for the best levels take their time.

Both libraries carry their own code, so equal input gives equal bytes on every machine.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bundler.model.artifacts import FileRecord
from bundler.support.remembered import (
    keep,
    kept_at,
    mark_used,
    read_bounded,
    seal,
    seal_bytes,
    unseal,
    unseal_bytes,
)

GZIP_LEVEL = 9
BEST_BROTLI = 11
QUICK_BROTLI = 5
WELL_COMPRESSED = 1_000_000
"""Largest size in bytes that is compressed at brotli's best level: on 4.7 MB of weights that takes 22 s, and the result
is 1 % smaller than at the fast level in 0.05 s."""

_WINDOW = 24
"""Log2 of how far brotli looks back: 16 MB, the most that browsers accept; 2 % smaller than its default of 4 MB."""

_SHIPPED = Path(__file__).with_name("runtime_sizes.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Bytes of one file, compressed."""

    gzip: int
    brotli: int


def choose_quality(size: int) -> int:
    """Brotli's level for a file of `size` bytes that is not shipped compressed."""
    return BEST_BROTLI if size <= WELL_COMPRESSED else QUICK_BROTLI


def compress_gzip(data: bytes) -> bytes:
    """`data` in gzip's form, without a name or a time."""
    import deflate  # noqa: PLC0415 (only bundles for the web are compressed)

    return bytes(deflate.gzip_compress(data, GZIP_LEVEL))


def compress_brotli(data: bytes, quality: int) -> bytes:
    """`data` in brotli's form, which every browser that runs WebAssembly reads."""
    import brotli  # noqa: PLC0415 (the same)

    return bytes(brotli.compress(data, quality=quality, lgwin=_WINDOW))


@dataclass(frozen=True, kw_only=True)
class Compressor:
    """Compresses files, or recalls what became of the same bytes before. Its place is below the cache root."""

    cache_root: Path

    def measure(self, source: Path, record: FileRecord, *, best: bool) -> Sizes:
        """How large `source`, which `record` describes, is in both forms; `best` where these are shipped themselves."""
        known = _shipped_sizes().get(record.sha256)
        if known is not None:
            return Sizes(gzip=known["gzip"], brotli=known["brotli"])
        if best:
            forms = self.compress(source, record, BEST_BROTLI)
            return Sizes(gzip=len(forms[".gz"]), brotli=len(forms[".br"]))
        return self._measure(source, record, choose_quality(record.size))

    def compress(self, source: Path, record: FileRecord, quality: int) -> Mapping[str, bytes]:
        """Both forms, by the ending of their file names; the cache keeps them."""
        pack = functools.partial(compress_brotli, quality=quality)
        return {
            ".br": self._recall(source, record, f"br-{quality}", pack),
            ".gz": self._recall(source, record, f"gz-{GZIP_LEVEL}", compress_gzip),
        }

    def _measure(self, source: Path, record: FileRecord, quality: int) -> Sizes:
        place = self._place(record, f"sizes-{GZIP_LEVEL}-{quality}.json")
        known = unseal(self._read(record, place.name), _about(place))
        if isinstance(known, dict):
            return Sizes(gzip=known["gzip"], brotli=known["brotli"])
        content = source.read_bytes()
        sizes = Sizes(gzip=len(compress_gzip(content)), brotli=len(compress_brotli(content, quality)))
        _keep(place, seal({"gzip": sizes.gzip, "brotli": sizes.brotli}, _about(place)))
        return sizes

    def _recall(self, source: Path, record: FileRecord, name: str, compress: Callable[[bytes], bytes]) -> bytes:
        place = self._place(record, name)
        known = unseal_bytes(self._read(record, name), _about(place))
        if known is not None:
            return known
        data = compress(source.read_bytes())
        _keep(place, seal_bytes(data, _about(place)))
        return data

    def _place(self, record: FileRecord, name: str) -> Path:
        return self.cache_root / "compressed" / record.sha256[:2] / record.sha256 / name

    def _read(self, record: FileRecord, name: str) -> bytes:
        return _read(kept_at(self.cache_root, "compressed", record.sha256[:2], record.sha256, name), record.size)


@functools.cache
def _shipped_sizes() -> Mapping[str, Mapping[str, Any]]:
    """Sizes of the runtime's own files at the best level, by digest: minutes that no build needs to spend again."""
    data: dict[str, dict[str, Any]] = json.loads(_SHIPPED.read_text("ascii"))
    return data


def _read(place: Path, size: int) -> bytes:
    """What is kept, nothing when there is none; it was used now, and so is the last that trimming the cache removes.
    What became of `size` bytes is hardly ever more, and never much.
    """
    try:
        data = read_bounded(place, size + (1 << 20))
    except OSError:
        return b""
    mark_used(place.parent)
    return data


def _keep(place: Path, data: bytes) -> None:
    """Its failure costs the next build some seconds only."""
    with contextlib.suppress(OSError):
        keep(place, data)


def _about(place: Path) -> str:
    return f"{place.name} of {place.parent.name}"
