"""Format `wheel`: the package with the model as its data in one wheel, and the runtime pinned beside it."""

from __future__ import annotations

import base64
import hashlib
import shutil
import sys
import zipfile
from pathlib import Path

from bundler.emitters.components import describe_loader
from bundler.emitters.contract import EmitRequest
from bundler.emitters.python.context import Context
from bundler.emitters.python.layout import LOCK
from bundler.emitters.python.licences import describe_wheel
from bundler.emitters.python.modules import LOADER
from bundler.emitters.python.profile import PythonSettings
from bundler.emitters.python.project import write_python_project
from bundler.emitters.python.wheelhouse import BACKEND_LOCK, Wheelhouse, fetch_runtime, find_platform
from bundler.emitters.writing import copy_file, write_text
from bundler.environments.variables import computing_environment
from bundler.model.errors import StageError
from bundler.model.paths import real_path
from bundler.model.proof import Emitted
from bundler.support.files import FILE_MODE
from bundler.support.processes import run_process

EPOCH = "315532800"
"""1980-01-01, the earliest time that a zip file can hold: archives do not depend on when they were made."""

_STAMP = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_TIME_LIMIT = 600.0
_TAG = "py3-none-any"
"""What the backend tags every wheel with."""

_BUILD = """\
import os, sys
backend, project, target = sys.argv[1:]
sys.path[:0] = [backend, os.path.join(project, "build_backend")]
os.chdir(project)
import storing
from bundler.support.processes import run_process
print(storing.build_wheel(target))
"""
"""A wheel of pure Python can be imported from: the backend needs no environment, and is the one that was locked."""


def write_wheel(request: EmitRequest, folder: Path) -> Emitted:
    """Write the bundle. Raises `BundlerError`."""
    context, house = pack_wheel(request, folder)
    write_text(folder / LOCK, house.lock)
    return Emitted(
        notes=(PythonSettings.of(request.profile).describe_pythons(chosen=request.versions_chosen),),
        payload=None,
        package=context.package,
        dependencies=(
            *(describe_wheel(wheel, "") for wheel in house.wheels),
            describe_loader(f"{context.artifact}/{context.package}/{LOADER}"),
        ),
    )


def pack_wheel(request: EmitRequest, folder: Path) -> tuple[Context, Wheelhouse]:
    """Put the wheel and its README into `folder`; returns also the wheels that it runs on, without the build backend's:
    nothing builds from here on.
    """
    project = folder / ".project"
    house = fetch_runtime(request)
    platform = find_platform(house.wheels, PythonSettings.of(request.profile).wheel_platforms)
    context = write_python_project(request, project, platform)
    built = _build(house.find(BACKEND_LOCK).path, project)
    rewrite_wheel(built, folder, platform)
    copy_file(project / "README.md", folder / "README.md")
    shutil.rmtree(project)
    return context, house.without(BACKEND_LOCK)


def _build(backend: Path, project: Path) -> Path:
    target = project / "dist"
    target.mkdir()
    done = run_process(
        # The build runs in the project's folder, where a relative path would name another place.
        [sys.executable, "-I", "-c", _BUILD, *(str(real_path(path)) for path in (backend, project, target))],
        seconds=_TIME_LIMIT,
        text=True,
        env={**computing_environment(), "SOURCE_DATE_EPOCH": EPOCH},
    )
    if done.returncode:
        raise StageError("the package does not build", details=tuple(done.stderr.strip().splitlines()[-12:]))
    return target / str(done.stdout).strip().splitlines()[-1]


def rewrite_wheel(source: Path, folder: Path, platform: str) -> None:
    """The same wheel for `platform` alone: the backend knows only packages for any. The same entries in the same order,
    stored, with one time stamp and one mode.

    Compressed bytes differ between builds of zlib, so nothing is compressed; weights hardly shrink anyway.
    """
    target = folder / f"{source.name.removesuffix(_TAG + '.whl')}py3-none-{platform}.whl"
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        changed = _change_tag(old, platform)
        for name in old.namelist():
            entry = zipfile.ZipInfo(name, _STAMP)
            entry.create_system = _UNIX
            entry.external_attr = (0o100000 | FILE_MODE) << 16
            if name in changed:
                new.writestr(entry, changed[name])
                continue
            with (
                old.open(name) as reader,
                new.open(entry, "w", force_zip64=old.getinfo(name).file_size >= 1 << 31) as writer,
            ):
                shutil.copyfileobj(reader, writer, 1 << 20)
    target.chmod(FILE_MODE)


def _change_tag(wheel: zipfile.ZipFile, platform: str) -> dict[str, bytes]:
    """The two files that say for which platform a wheel is: its description, and the record with that one's digest."""
    described = next(name for name in wheel.namelist() if name.endswith(".dist-info/WHEEL"))
    record = described.removesuffix("WHEEL") + "RECORD"
    before = wheel.read(described)
    after = before.replace(f"Tag: {_TAG}".encode(), f"Tag: py3-none-{platform}".encode())
    lines = wheel.read(record).replace(_record(described, before), _record(described, after))
    return {described: after, record: lines}


def _record(name: str, content: bytes) -> bytes:
    """A line of a wheel's `RECORD`, as the standard for installed packages has it."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}".encode()
