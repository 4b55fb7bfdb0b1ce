"""Classes for verification, compiled once and kept in the cache."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bundler.emitters.jvm.artifacts import COMPILER, COMPILER_LOCK
from bundler.emitters.jvm.compiling import Compilation, compile_kotlin
from bundler.environments.registry import Environments
from bundler.execution.locks import hold
from bundler.execution.temporary import temporary_folder
from bundler.model.digests import digest_file
from bundler.model.events import Reporter

_KEPT: Final = "classes"


def keep_classes(work: Compilation, libraries: str, environments: Environments, reporter: Reporter) -> Path:
    """The folder with the classes that `work` gives; `libraries` is the digest of the libraries' lock.

    Raises `EnvironmentMissingError` without Java, or the compiler, and `StageError` where it does not compile.
    """
    lock = environments.lock_for(COMPILER_LOCK, COMPILER, reporter)
    key = _digest([*work.sources, *work.friends], f"{libraries} {lock.digest}")
    place = environments.root / _KEPT / key
    place.parent.mkdir(parents=True, exist_ok=True)
    with hold(place.with_suffix(".lock")):  # of several builds at once, the first compiles
        if not _is_whole(place):
            with temporary_folder("classes") as scratch:
                compile_kotlin(work, Path(scratch) / "classes", environments, reporter)
                _keep(Path(scratch) / "classes", place)
    return place


def _digest(paths: Sequence[Path], tools: str) -> str:
    texts = sorted(f"{path.name} {_digest_content(path)}" for path in paths)
    return hashlib.sha256("\n".join((tools, *texts)).encode()).hexdigest()


def _digest_content(path: Path) -> str:
    return _list_digests(path) if path.is_dir() else digest_file(path)


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
