"""Packages of npm in the cache: each by its digest, with those of its files that were asked for beside it."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bundler.model.digests import digest_file
from bundler.support.files import replacing


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFile:
    """One file of a package. `path` is that inside the package, `source` where it is kept; `size` is in bytes."""

    path: str
    source: Path
    size: int
    sha256: str


KEPT = "packages/npm"
"""Where packages are kept below the cache root."""


def package_place(root: Path, sha256: str) -> Path:
    """The folder of a package below the cache root."""
    return root / KEPT / sha256[:2] / sha256


def recall_file(place: Path, path: str) -> PackageFile | None:
    """A file that was unpacked before, when it is whole still."""
    source = place / "files" / path
    try:
        sha256 = source.with_name(f"{source.name}.sha256").read_text("ascii")
        if digest_file(source) != sha256:
            return None
        return PackageFile(path=path, source=source, size=source.stat().st_size, sha256=sha256)
    except (OSError, UnicodeDecodeError):
        return None


def find_tarball(place: Path, sha256: str) -> Path | None:
    """The package's own file, when it is there and whole."""
    kept = next(iter(place.glob("*.tgz")), None)
    return kept if kept is not None and digest_file(kept) == sha256 else None


def keep_tarball(tarball: Path, place: Path) -> Path:
    """Move a fetched package to its place by digest."""
    place.mkdir(parents=True, exist_ok=True)
    kept = place / tarball.name
    tarball.replace(kept)
    return kept


def unpack_files(tarball: Path, wanted: Sequence[str], folder: Path) -> None:
    """Write the regular files `wanted` below `folder`. Where they go is what was asked, never what the archive says."""
    with tarfile.open(tarball, "r:gz") as archive:
        for member in archive:
            path = "/".join(PurePosixPath(member.name).parts[1:])  # the first is the package's root, often `package`
            if member.isreg() and path in wanted:
                _write(archive, member, folder / path)


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    stream = archive.extractfile(member)
    if stream is None:
        return
    digest = target.with_name(f"{target.name}.sha256")
    with replacing(target) as draft, replacing(digest) as sum_draft, stream:
        with draft.open("wb") as output:
            shutil.copyfileobj(stream, output, 1 << 20)
        sum_draft.write_text(digest_file(draft), "ascii")
