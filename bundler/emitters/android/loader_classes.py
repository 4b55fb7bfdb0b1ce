"""The loader and the generated classes of a module, compiled for the Java virtual machine with what that needs."""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from packaging.version import Version

from bundler.emitters.jvm.artifacts import list_runtime, name_runtime_lock
from bundler.emitters.jvm.compiling import Compilation
from bundler.emitters.jvm.kept_classes import keep_classes
from bundler.emitters.jvm.maven import fetch_artifacts
from bundler.emitters.jvm.sources import LOADER, rename_package, write_sources
from bundler.environments.lockfiles import shipped_names
from bundler.environments.registry import Environments
from bundler.execution.temporary import temporary_folder
from bundler.model.errors import VerificationError
from bundler.model.events import Reporter

MAIN: Final = "StandIn"
"""The class that starts the loader on a Java virtual machine."""

MARK: Final = "LoadedBundle"
"""The class by which the loader is found: a bundle's own package may end with `loader`, too."""

_PIXELS: Final = "Pixels.kt"
"""A part of loaders that prepare pictures: generated classes then take Android's own."""

_UNPINNED: Final = "0" * 64
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
    loader: Path, version: str, environments: Environments, reporter: Reporter, *, pin: str, folder: Path
) -> tuple[str, tuple[Path, ...]]:
    """The package of the loader once it is compiled, and the module's class path with ONNX Runtime `version`.

    The loader is a folder of sources next to the generated ones, or a jar with the classes of both, which run as they
    are. `pin` is the digest in generated classes, which are written to `folder`.

    Raises `EnvironmentMissingError` without Java or Maven, `StageError` where it does not compile, and
    `VerificationError` where there is no loader.
    """
    with temporary_folder("loader") as scratch:
        package, sources, classes = _read_loader(loader, Path(scratch) / "module")
        lock = environments.lock_for(name_runtime_lock(version), list_runtime(version), reporter)
        libraries = tuple(fetch_artifacts(lock, environments, reporter).values())
        pictures = any(path.name == _PIXELS for path in sources)
        parts = ("jvm", "stand_in", *(("stand_in_images",) if pictures else ()))
        written = (*sources, *write_sources(parts, package, Path(scratch) / "own"))
        work = Compilation(sources=written, libraries=libraries, module="loader", friends=classes)
        place = keep_classes(work, lock.digest, environments, reporter)
        if not classes:
            facade = _read_facade(loader, pin, Path(scratch) / "facade")
            work = Compilation(sources=facade, libraries=libraries, module="loader", friends=(place,))
            classes = (_write_pinned(keep_classes(work, lock.digest, environments, reporter), pin, folder),)
    return package, (place, *classes, *libraries)


def _read_facade(loader: Path, pin: str, folder: Path) -> tuple[Path, ...]:
    """The sources of the generated classes, which lie next to the folder of the loader. Without their pin they are the
    same for every training of a model, so that they are compiled once.
    """
    package = _find_package(sorted(loader.glob("*.kt")))
    try:
        files = tuple(rename_package(path, package, LOADER, folder) for path in sorted(loader.parent.glob("*.kt")))
    except UnicodeDecodeError as error:
        raise VerificationError("the module's classes cannot be read", hint="build it again") from error
    for path in files:
        text = path.read_text("utf-8")
        if _UNPINNED in text:
            raise VerificationError("the module's class has no pin of its configuration", hint="build it again")
        path.write_text(text.replace(pin, _UNPINNED), "utf-8")
    return files


def _write_pinned(classes: Path, pin: str, folder: Path) -> Path:
    """The classes with their pin: a constant, which is text in them."""
    shutil.copytree(classes, folder)
    for path in folder.rglob("*.class"):
        path.write_bytes(path.read_bytes().replace(_UNPINNED.encode("ascii"), pin.encode("ascii")))
    return folder


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
