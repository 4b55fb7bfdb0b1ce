"""The loader of a module, compiled for the Java virtual machine: its own sources, with what such a machine needs."""

from __future__ import annotations

import hashlib
import re
import shutil
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from packaging.version import Version

from bundler.emitters.jvm.artifacts import COMPILER, COMPILER_LOCK, list_runtime, name_runtime_lock
from bundler.emitters.jvm.compiling import Compilation, compile_kotlin
from bundler.emitters.jvm.maven import fetch_artifacts
from bundler.emitters.jvm.sources import LOADER, rename_package, write_sources
from bundler.environments.lockfiles import shipped_names
from bundler.environments.registry import Environments
from bundler.execution.locks import hold
from bundler.execution.temporary import temporary_folder
from bundler.model.digests import digest_file
from bundler.model.errors import VerificationError
from bundler.model.events import Reporter

MAIN: Final = "StandIn"
"""The class that starts the loader on a Java virtual machine."""

MARK: Final = "LoadedBundle"
"""The class by which the loader is found: a bundle's own package may end with `loader`, too."""

_KEPT: Final = "classes"
_ANDROID: Final = re.compile(r"^import android\.", re.MULTILINE)
_PACKAGE: Final = re.compile(r"^package ([a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*)$", re.MULTILINE)
_CLASS: Final = re.compile(rf"^([a-z][a-z0-9_]*(?:/[a-z][a-z0-9_]*)*/loader)/{MARK}\.class$")
_PREFIX: Final = name_runtime_lock("")


def choose_runtime(version: str) -> str:
    """The version of ONNX Runtime for the JVM nearest to this one: not every version of Android's archive has one."""
    known = [Version(name.removeprefix(_PREFIX)) for name in shipped_names() if name.startswith(_PREFIX)]
    later = [found for found in known if found >= Version(version)]
    return str(min(later) if later else max(known))


def provide_classes(
    loader: Path, version: str, environments: Environments, reporter: Reporter
) -> tuple[str, tuple[Path, ...]]:
    """The package of the loader once it is compiled, and its class path with ONNX Runtime `version`. The loader is a
    folder of sources, or a jar with its classes, which run as they are.

    Raises `EnvironmentMissingError` without Java or Maven, `StageError` where it does not compile, and
    `VerificationError` where there is no loader.
    """
    with temporary_folder("loader") as scratch:
        package, sources, classes = _read_loader(loader, Path(scratch) / "module")
        lock = environments.lock_for(name_runtime_lock(version), list_runtime(version), reporter)
        libraries = tuple(fetch_artifacts(lock, environments, reporter).values())
        compiler = environments.lock_for(COMPILER_LOCK, COMPILER, reporter)
        written = (*sources, *write_sources(("jvm", "stand_in"), package, Path(scratch) / "own"))
        key = _digest([*written, *classes], f"{lock.digest} {compiler.digest}")
        place = environments.root / _KEPT / key
        place.parent.mkdir(parents=True, exist_ok=True)
        with hold(place.with_suffix(".lock")):  # of several builds at once, the first compiles
            if not _is_whole(place):
                work = Compilation(sources=written, libraries=libraries, module="loader", friends=classes)
                compile_kotlin(work, Path(scratch) / "classes", environments, reporter)
                _keep(Path(scratch) / "classes", place)
    return package, (place, *classes, *libraries)


def _read_loader(loader: Path, folder: Path) -> tuple[str, tuple[Path, ...], tuple[Path, ...]]:
    """Its package, its sources and its classes. Modules differ in the package alone, so sources are written to `folder`
    in the same one for all.
    """
    try:
        if not loader.is_dir():
            return _find_compiled_package(loader), (), (loader,)
        files = sorted(path for path in loader.glob("*.kt") if not _ANDROID.search(path.read_text("utf-8")))
        package = _find_package(files)
    except (UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise VerificationError("the module's loader cannot be read", hint="build it again") from error
    return LOADER, tuple(rename_package(path, package, LOADER, folder) for path in files), ()


def _find_package(files: Sequence[Path]) -> str:
    return _take_package(match[1] for path in files if (match := _PACKAGE.search(path.read_text("utf-8"))))


def _find_compiled_package(jar: Path) -> str:
    with zipfile.ZipFile(jar) as archive:
        return _take_package(match[1].replace("/", ".") for name in archive.namelist() if (match := _CLASS.match(name)))


def _take_package(names: Iterable[str]) -> str:
    found = set(names)
    if len(found) != 1:
        raise VerificationError("the module's loader is missing or in several packages", hint="build it again")
    return found.pop()


def _digest(files: Sequence[Path], tools: str) -> str:
    texts = sorted(f"{path.name} {digest_file(path)}" for path in files)
    return hashlib.sha256("\n".join((tools, *texts)).encode()).hexdigest()


def _is_whole(place: Path) -> bool:
    """Whether the classes are those that were compiled: each has its digest in the list."""
    listed = place.with_suffix(".sums")
    try:
        return listed.read_text("ascii") == _list_digests(place)
    except (OSError, UnicodeDecodeError):
        return False


def _list_digests(place: Path) -> str:
    paths = sorted(path for path in place.rglob("*") if path.is_file())
    return "\n".join(f"{digest_file(path)} {path.relative_to(place).as_posix()}" for path in paths)


def _keep(classes: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    draft = place.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(classes, draft)
    draft.replace(place)
    place.with_suffix(".sums").write_text(_list_digests(place), "ascii")
