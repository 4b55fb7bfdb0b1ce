"""Archives of a bundle: which files they hold, each once and inside of the archive.

Tools disagree about an archive with two entries of one name (one is checked, the other runs), and some unpack a link or
a path that leads out of their folder. No archive that bundler writes or ships has any of these.
"""

from __future__ import annotations

import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from bundler.model.confinement import refuse_path

MAX_ENTRIES: Final = 100_000
"""Of one archive. The largest that bundles carry, Kotlin's standard library, has 1,900."""

MAX_UNPACKED: Final = 1 << 30
"""Bytes of an entry that is unpacked: a recorded value has no more."""

ZIP_SUFFIXES: Final = (".jar", ".aar", ".whl", ".pex", ".zip")
TAR_SUFFIXES: Final = (".tgz",)

_BROKEN: Final = (OSError, EOFError, ValueError, zipfile.BadZipFile, tarfile.TarError, zlib.error, NotImplementedError)
"""What reading an archive of a stranger may raise."""


def is_archive(path: str) -> bool:
    """Whether this is the name of an archive that `list_entries` can read."""
    return path.endswith((*ZIP_SUFFIXES, *TAR_SUFFIXES))


def read_entry(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """An entry, which may be packed a thousand times smaller than it is. Raises `ValueError` beyond `limit` bytes."""
    size = archive.getinfo(name).file_size
    if size > limit:
        raise ValueError(f"{name} has {size} bytes, which is more than {limit}")
    return archive.read(name)


def unpack_folder(archive: Path, folder: str, target: Path) -> None:
    """Unpack the files of one folder of a zip archive to the same paths below `target`. Raises `ValueError` for an
    archive that `list_entries` refuses, and for an entry of more than `MAX_UNPACKED` bytes.
    """
    names = [name for name in list_entries(archive) if name.startswith(f"{folder}/")]
    try:
        with zipfile.ZipFile(archive) as opened:
            for name in names:
                place = target / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(read_entry(opened, name, MAX_UNPACKED))
    except (*_BROKEN, RuntimeError) as error:
        raise ValueError(str(error) or type(error).__name__) from error


def list_entries(archive: Path) -> dict[str, int]:
    """The files in `archive` by name, with their size in bytes; its folders are left out.

    Raises `ValueError` for a name that is there twice or leads out of the archive, for a link or another entry that is
    not a file, and for an archive that cannot be read.
    """
    found: dict[str, int] = {}
    try:
        for name, size in _read_tar(archive) if archive.name.endswith(TAR_SUFFIXES) else _read_zip(archive):
            refusal = refuse_path(name) or ("present twice" if name in found else None)
            if refusal:
                raise ValueError(f"entry {name[:80]!r}: {refusal}")
            if len(found) >= MAX_ENTRIES:
                raise ValueError(f"it has more than {MAX_ENTRIES} entries")
            found[name] = size
    except _BROKEN as error:
        raise ValueError(str(error) or type(error).__name__) from error
    return found


def _read_zip(archive: Path) -> Iterator[tuple[str, int]]:
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            mode = entry.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise ValueError(f"entry {entry.filename[:80]!r}: not a regular file")
            # `orig_filename` is the name as it stands in the archive, before Python mends it.
            if not entry.orig_filename.endswith("/"):
                yield entry.orig_filename, entry.file_size
            elif refuse_path(entry.orig_filename[:-1]):
                raise ValueError(f"folder {entry.filename[:80]!r}: {refuse_path(entry.orig_filename[:-1])}")


def _read_tar(archive: Path) -> Iterator[tuple[str, int]]:
    with tarfile.open(archive, "r|gz") as opened:
        for entry in opened:
            if not (entry.isreg() or entry.isdir()):
                raise ValueError(f"entry {entry.name[:80]!r}: not a regular file")
            if entry.isreg():
                yield entry.name, entry.size


def compare_entries(found: dict[str, int], listed: dict[str, int]) -> Iterable[str]:
    """How the files of an archive differ from those that the manifest lists."""
    for name in sorted(found.keys() - listed.keys()):
        yield f"entry {name[:80]!r} is not in the manifest"
    for name in sorted(listed.keys() - found.keys()):
        yield f"entry {name[:80]!r} is missing"
    for name in sorted(found.keys() & listed.keys()):
        if found[name] != listed[name]:
            yield f"entry {name[:80]!r} has {found[name]} bytes instead of {listed[name]}"
