"""The digest of all the code that decides what a stage does: its folder, what that imports of ours, and the worker."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

from bundler.model.digests import digest_json
from bundler.model.errors import DefectError
from bundler.stages.registry import run_module

_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n#]*)|import[ \t]+([\w.]+))", re.MULTILINE
)
_WORKER = ("bundler.execution.worker", "bundler.support.disk")


@functools.cache
def digest_stage_sources(stage: str) -> str:
    """SHA-256 over every file in the stage's folder and every module of its package or of bundler that they import,
    directly or indirectly. Computed once in each process.
    """
    files = _all_files(run_module(stage))
    return digest_json({name: hashlib.sha256(_read(path)).hexdigest() for name, path in files.items()})


@functools.cache
def package_folder(package: str) -> Path:
    """The folder of a top-level package, found without importing it. Raises `DefectError`."""
    spec = importlib.util.find_spec(package)
    if spec is not None and spec.origin and Path(spec.origin).name == "__init__.py":
        return Path(spec.origin).parent  # the search locations of an editable installation may name other folders first
    if spec is None or not spec.submodule_search_locations:
        raise DefectError(f"the package {package!r} of a stage cannot be found")
    return Path(next(iter(spec.submodule_search_locations)))


def stage_packages(stage: str) -> dict[str, str]:
    """The top-level packages, with their folders, that a worker must be able to import for this stage."""
    names = dict.fromkeys(("bundler", run_module(stage).partition(".")[0]))
    return {name: str(package_folder(name)) for name in names}


def _all_files(module: str) -> dict[str, Path]:
    folder = module.rpartition(".")[0]
    roots = {"bundler", module.partition(".")[0]}
    place = _folder_of(folder)
    found = {f"{folder}/{path.relative_to(place).as_posix()}": path for path in _files_in(place)}
    pending = [name for path in found.values() for name in _imports(path)] + list(_WORKER)
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen or name.partition(".")[0] not in roots:
            continue
        seen.add(name)
        path = _module_file(name)
        if path is not None:
            found[name] = path
            pending += _imports(path)
        pending.append(name.rpartition(".")[0])  # importing a module runs its packages' code too
    return found


def _files_in(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _folder_of(package: str) -> Path:
    top, _, rest = package.partition(".")
    return package_folder(top).joinpath(*rest.split(".") if rest else ())


@functools.cache
def _read(path: Path) -> bytes:
    """A file's bytes; many stages share most of what they import."""
    return path.read_bytes()


@functools.cache
def _module_file(name: str) -> Path | None:
    place = _folder_of(name)
    for candidate in (place.with_suffix(".py"), place / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@functools.cache
def _imports(path: Path) -> tuple[str, ...]:
    """Full names that a file may import; `from a import b` gives both `a` and `a.b`, as `b` may be a module."""
    if path.suffix != ".py":
        return ()
    names: list[str] = []
    for source, items, plain in _IMPORT.findall(_read(path)):
        names.append((source or plain).decode())
        names.extend(f"{source.decode()}.{item.decode()}" for item in re.findall(rb"\w+", items))
    return tuple(dict.fromkeys(names))
