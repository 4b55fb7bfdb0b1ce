"""Format `tgz`: the package as one file, as npm packs it, with equal bytes for equal content."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import IO, BinaryIO, cast

from bundler.emitters.components import describe_loader
from bundler.emitters.contract import EmitRequest
from bundler.emitters.web.compression import compress_gzip
from bundler.emitters.web.licences import describe_runtime
from bundler.emitters.web.project import LOADER, write_web_project
from bundler.emitters.writing import copy_file
from bundler.model.proof import Emitted
from bundler.support.files import FILE_MODE

ROOT = "package"
_MEMBER = 64 << 20
"""Bytes that are compressed at once: a tarball of several members of gzip is one, and large models need no more memory
than this."""

_TIME = 499162500
"""1985-10-26, the time that npm itself gives every file: archives do not depend on when they were made."""


def write_tgz(request: EmitRequest, folder: Path) -> Emitted:
    """Write the bundle. Raises `BundlerError`."""
    project = folder / ".project"
    written = write_web_project(request, project)
    pack_folder(project, folder / written.context.artifact)
    copy_file(project / "README.md", folder / "README.md")
    inside = f"{written.context.artifact}/{ROOT}/"
    runtime = describe_runtime(request, written.licences, project, inside)
    shutil.rmtree(project)
    return Emitted(
        payload=None,
        package=written.context.package,
        dependencies=(runtime, describe_loader(f"{inside}{LOADER}")),
        downloads=written.downloads,
    )


def pack_folder(folder: Path, target: Path) -> None:
    """Pack every file below `folder`, in the order of their paths."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    with target.open("wb") as stream:
        members = _Members(stream)
        with tarfile.open(
            fileobj=cast("IO[bytes]", members), mode="w|", format=tarfile.PAX_FORMAT, bufsize=1 << 20
        ) as archive:
            for path in paths:
                _add(archive, path, f"{ROOT}/{path.relative_to(folder).as_posix()}")
        members.end()
    target.chmod(FILE_MODE)


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = path.stat().st_size
    entry.mode = FILE_MODE
    entry.mtime = _TIME
    with path.open("rb") as stream:
        archive.addfile(entry, stream)


class _Members:
    """Writes what it is given to `stream`, as members of gzip one after the other; `end` writes the last."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._waiting = bytearray()

    def write(self, data: bytes) -> int:
        self._waiting += data
        while len(self._waiting) >= _MEMBER:
            self._write_member(_MEMBER)
        return len(data)

    def end(self) -> None:
        if self._waiting:
            self._write_member(len(self._waiting))

    def _write_member(self, size: int) -> None:
        self._stream.write(compress_gzip(bytes(self._waiting[:size])))
        del self._waiting[:size]
