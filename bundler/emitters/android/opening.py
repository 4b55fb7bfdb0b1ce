"""A finished bundle for Android of either form: where its payload is, and its loader."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from bundler.emitters.android.archive import CLASSES, ENTRIES, REPOSITORY
from bundler.emitters.android.loader_classes import MARK
from bundler.emitters.android.project import ASSETS, SOURCES
from bundler.emitters.jvm.maven import check_pom
from bundler.emitters.payload import CONFIG_NAME, PAYLOAD
from bundler.execution.temporary import temporary_folder
from bundler.model.errors import VerificationError
from bundler.support.text import describe_fault
from bundler.verification.archives import list_entries

_BROKEN: Final = (OSError, ValueError, zipfile.BadZipFile, RuntimeError, NotImplementedError)
"""What reading an archive of anybody may raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenModule:
    """`payload` is the folder with `runtime.json`; `loader` is the folder of the loader's sources, or the jar with its
    classes.
    """

    payload: Path
    loader: Path


@contextmanager
def open_module(bundle: Path) -> Iterator[OpenModule]:
    """Look at `bundle`. Raises `VerificationError` when it is no whole bundle of this kind."""
    if not (bundle / REPOSITORY).is_dir():
        sources = {path.parent for path in (bundle / SOURCES).rglob(f"loader/{MARK}.kt")}
        yield OpenModule(payload=_find_payload(bundle, bundle / ASSETS), loader=_take_one(bundle, sources))
        return
    archive = _take_one(bundle, set((bundle / REPOSITORY).rglob("*.aar")))
    with temporary_folder("archive") as scratch:
        folder = Path(scratch)
        try:
            check_pom(archive.with_suffix(".pom").read_bytes())
            _unpack(archive, folder)
            list_entries(folder / CLASSES)  # each class once
        except _BROKEN as error:
            why = f"{archive.name}: {describe_fault(error)}"
            raise VerificationError(_not_whole(bundle), details=(why,), hint="build it again") from error
        yield OpenModule(payload=_find_payload(bundle, folder / ENTRIES), loader=folder / CLASSES)


def _find_payload(bundle: Path, assets: Path) -> Path:
    return _take_one(bundle, set(assets.glob(f"*/{PAYLOAD}/{CONFIG_NAME}"))).parent


def _take_one(bundle: Path, found: set[Path]) -> Path:
    if len(found) != 1:
        raise VerificationError(_not_whole(bundle), hint="build it again")
    return found.pop()


def _not_whole(bundle: Path) -> str:
    return f"{bundle} is not a complete module for Android"


def _unpack(archive: Path, folder: Path) -> None:
    """The classes and the assets, held to how they are written here: stored, each once, none outside of its folder."""
    with zipfile.ZipFile(archive) as opened:
        wanted = [
            entry for entry in opened.infolist() if entry.filename.startswith(ENTRIES) or entry.filename == CLASSES
        ]
        if CLASSES not in {entry.filename for entry in wanted}:
            raise ValueError(f"it has no {CLASSES}")
        if sum(entry.file_size for entry in wanted) > archive.stat().st_size:
            raise ValueError("its files are larger than the archive")
        for entry in wanted:
            _check_entry(entry)
            target = folder / entry.filename
            target.parent.mkdir(parents=True, exist_ok=True)
            with opened.open(entry) as reader, target.open("xb") as writer:
                shutil.copyfileobj(reader, writer, 1 << 20)


def _check_entry(entry: zipfile.ZipInfo) -> None:
    parts = PurePosixPath(entry.filename).parts
    if "/".join(parts) != entry.filename or ".." in parts or "\\" in entry.filename or ":" in entry.filename:
        raise ValueError(f"{entry.filename[:80]!r} is not a plain name")
    if entry.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{entry.filename[:80]!r} is compressed")
