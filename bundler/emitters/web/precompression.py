"""Writes compressed files beside those that a browser fetches, for hosts that serve precompressed files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bundler.emitters.contract import EmitRequest
from bundler.emitters.payload import PAYLOAD
from bundler.emitters.web.compression import BEST_BROTLI, Compressor, choose_quality
from bundler.emitters.web.demo import DEMO
from bundler.emitters.web.imports import SELF_TEST, list_imports
from bundler.emitters.web.modules import ENTRY, find_modules
from bundler.emitters.web.vendor import VENDOR
from bundler.emitters.writing import write_bytes
from bundler.model.artifacts import FileRecord
from bundler.model.digests import digest_file
from bundler.model.runtime import RuntimeConfig
from bundler.model.stage import Note

_FOLDERS = (VENDOR, PAYLOAD, DEMO)
_GOLDEN = f"{PAYLOAD}/golden/"
_LICENCES = ("LICENSE", "ThirdPartyNotices.txt")


def precompress(request: EmitRequest, folder: Path) -> None:
    """Write `name.br` and `name.gz` beside each file that a page or the loader fetches, where they are smaller."""
    note = Note(text="compressing the files that a browser downloads: minutes for a new model or runtime, then cached")
    request.reporter.pass_on(note)
    compressor = Compressor(cache_root=request.environments.root)
    # Both libraries release the interpreter's lock.
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        for _ in pool.map(
            lambda path: _compress(path, folder, compressor), sorted(_list_served(request.config, folder))
        ):
            pass


def _list_served(config: RuntimeConfig, folder: Path) -> set[Path]:
    entries = [ENTRY, f"{SELF_TEST}.js", *(one.entry for one in list_imports(config)[1:])]
    modules = {folder / path for entry in entries for path in find_modules(folder, entry)}
    return modules | {path for name in _FOLDERS for path in _list_files(folder / name)}


def _list_files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in _LICENCES:
            yield path


def _compress(path: Path, folder: Path, compressor: Compressor) -> None:
    name = path.relative_to(folder).as_posix()
    record = FileRecord(path=name, size=path.stat().st_size, sha256=digest_file(path))
    # Only a self-test fetches the golden set.
    quality = choose_quality(record.size) if name.startswith(_GOLDEN) else BEST_BROTLI
    for ending, data in compressor.compress(path, record, quality).items():
        if len(data) < record.size:
            write_bytes(path.with_name(path.name + ending), data)
