"""Compressed forms beside the files that a browser fetches, for hosts that serve such files as they are."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bundler.emitters.payload import PAYLOAD
from bundler.emitters.web.compression import Compressor
from bundler.emitters.web.demo import DEMO
from bundler.emitters.web.modules import ENTRY, find_modules
from bundler.emitters.web.vendor import VENDOR
from bundler.emitters.writing import write_bytes
from bundler.model.artifacts import FileRecord
from bundler.model.digests import digest_file

_FOLDERS = (VENDOR, PAYLOAD, DEMO)
_LICENCES = ("LICENSE", ".txt")
ENDINGS = (".br", ".gz")


def precompress(folder: Path, cache_root: Path) -> None:
    """Write `name.br` and `name.gz` beside each file that a page or the loader fetches, where they are smaller."""
    compressor = Compressor(cache_root=cache_root)
    # Both libraries let go of the interpreter's lock.
    with ThreadPoolExecutor(max_workers=2) as pool:
        for _ in pool.map(lambda path: _compress(path, folder, compressor), sorted(_list_served(folder))):
            pass


def _list_served(folder: Path) -> set[Path]:
    modules = {folder / path for path in find_modules(folder, ENTRY)}
    return modules | {path for name in _FOLDERS for path in _list_files(folder / name)}


def _list_files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.endswith(_LICENCES):
            yield path


def _compress(path: Path, folder: Path, compressor: Compressor) -> None:
    name = path.relative_to(folder).as_posix()
    record = FileRecord(path=name, size=path.stat().st_size, sha256=digest_file(path))
    for ending, data in compressor.compress(path, record).items():
        if len(data) < record.size:
            write_bytes(path.with_name(path.name + ending), data)
