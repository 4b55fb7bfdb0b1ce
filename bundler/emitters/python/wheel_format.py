"""Format `wheel`: the package with the model as its data in one wheel, and the runtime pinned beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from bundler.emitters.contract import EmitRequest
from bundler.emitters.python.context import Context
from bundler.emitters.python.layout import LOCK
from bundler.emitters.python.licences import describe_wheel
from bundler.emitters.python.project import write_python_project
from bundler.emitters.python.wheelhouse import BACKEND_LOCK, Wheelhouse, fetch_runtime
from bundler.emitters.writing import FILE_MODE, copy_file, write_text
from bundler.model.errors import StageError
from bundler.model.proof import Emitted

EPOCH = "315532800"
"""1980-01-01, the earliest time that a zip file can hold: archives do not depend on when they were made."""

_STAMP = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_TIME_LIMIT = 600.0

_BUILD = """\
import os, sys
backend, project, target = sys.argv[1:]
sys.path.insert(0, backend)
os.chdir(project)
from flit_core import buildapi
print(buildapi.build_wheel(target))
"""
"""A wheel of pure Python can be imported from: the backend needs no environment, and is the one that was locked."""


def write_wheel(request: EmitRequest, folder: Path) -> Emitted:
    """Write the bundle. Raises `BundlerError`."""
    context, house = pack_wheel(request, folder)
    write_text(folder / LOCK, house.lock)
    return Emitted(
        payload=None,
        package=context.package,
        components=tuple(describe_wheel(wheel, "") for wheel in house.wheels),
    )


def pack_wheel(request: EmitRequest, folder: Path) -> tuple[Context, Wheelhouse]:
    """Put the wheel and its README into `folder`; answers also the wheels of its runtime."""
    project = folder / ".project"
    context = write_python_project(request, project)
    house = fetch_runtime(request, context.requirements)
    built = _build(house.find(BACKEND_LOCK).path, project)
    rewrite_archive(built, folder / built.name)
    copy_file(project / "README.md", folder / "README.md")
    shutil.rmtree(project)
    return context, house


def _build(backend: Path, project: Path) -> Path:
    target = project / "dist"
    target.mkdir()
    done = subprocess.run(
        # The build runs in the project's folder, where a relative path would name another place.
        [sys.executable, "-I", "-c", _BUILD, *(str(path.resolve()) for path in (backend, project, target))],
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIME_LIMIT,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH},
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise StageError("the package does not build", details=tuple(done.stderr.strip().splitlines()[-12:]))
    return target / done.stdout.strip().splitlines()[-1]


def rewrite_archive(source: Path, target: Path) -> None:
    """The same entries in the same order, stored, with one time stamp and one mode.

    Compressed bytes differ between builds of zlib, so nothing is compressed; weights hardly shrink anyway.
    """
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            entry = zipfile.ZipInfo(name, _STAMP)
            entry.create_system = _UNIX
            entry.external_attr = (0o100000 | FILE_MODE) << 16
            with (
                old.open(name) as reader,
                new.open(entry, "w", force_zip64=old.getinfo(name).file_size >= 1 << 31) as writer,
            ):
                shutil.copyfileobj(reader, writer, 1 << 20)
    target.chmod(FILE_MODE)
