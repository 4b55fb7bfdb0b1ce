"""Reads the JSON files of a model package of ONNX Runtime, with every path checked and resolved.

Schema 1 of `model_package/README.md` in ONNX Runtime's repository; docs/ortpackage.md says what was tried. Nothing in a
package is trusted: a path that leaves its folder is refused, and a shared asset must have the digest that names it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from bundler.model.codec import parse_json
from bundler.model.confinement import find_files
from bundler.model.digests import digest_file
from bundler.model.errors import ModelError
from bundler.model.paths import real_path

MANIFEST = "manifest.json"
_COMPONENT_FILE = "component.json"
_MAJOR, _MINOR = 1, 0
"""What is read: every minor of this major. Up to this minor unknown fields are refused, as the runtime does."""

_LARGEST = 16_000_000
"""Bytes of a JSON file; no package's comes near."""

_ASSET = re.compile(r"sha256:([0-9a-f]{64})(?:/(.+))?")
_WEIGHTS = "session.model_external_initializers_file_folder_path"


class _Part(BaseModel):
    """An object of the package's JSON. Unknown fields are kept, for only the schema's version says whether they are
    refused.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")

    additional_metadata: Any = None


class _Manifest(_Part):
    schema_version: Any = None
    package_name: Any = None
    package_version: Any = None
    description: Any = None
    layout: Any = "portable"
    components: dict[str, Any] = {}
    shared_assets: dict[str, Any] = {}


class _Component(_Part):
    component_name: Any = None
    variants: dict[str, Any]


class _Variant(_Part):
    variant_directory: str = ""
    ep: str = ""
    device: Any = None
    compatibility_string: str = ""
    executor_info: dict[str, Any] = {}


class _Session(_Part):
    """What `executor_info` says to ONNX Runtime, which takes more than is read here."""

    model_file: str = ""
    session_options: dict[str, Any] = {}


P = TypeVar("P", bound=_Part)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedVariant:
    """One variant: its provider by the runtime's name and what it was compiled for (empty where the package does not
    say), the file that ONNX Runtime would open (None where it names none), and the folder of its weights where they
    stand apart.
    """

    name: str
    provider: str
    compiled_for: str
    model: Path | None
    weights: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Package:
    """A package while it is read; `assets` are places of shared assets that the manifest moves."""

    root: Path
    strict: bool
    assets: Mapping[str, str]


def is_package(path: Path) -> bool:
    """Whether `path` is a folder with the manifest of a model package."""
    try:
        return {"schema_version", "components"} <= set(_read_json(path / MANIFEST))
    except ModelError:
        return False


def read_components(root: Path) -> dict[str, tuple[PackagedVariant, ...]]:
    """The variants by component, in the order of the manifest. Raises `ModelError`."""
    data = _read_json(root / MANIFEST)
    minor = _check_version(data)
    manifest = _parse(_Manifest, data, "the manifest", strict=minor <= _MINOR)
    package = _Package(root=real_path(root), strict=minor <= _MINOR, assets=manifest.shared_assets)
    if manifest.layout != "portable":
        raise _bad(
            "its layout must be portable: the paths of an installed package may lead anywhere on another machine"
        )
    if not manifest.components:
        raise _bad("it has no components")
    return {name: tuple(_read_component(package, name, value)) for name, value in manifest.components.items()}


def _check_version(data: Mapping[str, Any]) -> int:
    """The minor version of the schema. The layouts before schema 1 listed components by name."""
    if isinstance(data.get("components"), list):
        raise _bad("its layout is older than ONNX Runtime 1.28, and no later version reads it")
    found = re.fullmatch(r"(\d{1,9})(?:\.(\d{1,9}))?", str(data.get("schema_version")))
    if found is None:
        raise _bad("its schema_version is not a version")
    if int(found[1]) != _MAJOR:
        raise _bad(f"it has schema {found[0]}; this bundler reads {_MAJOR}")
    return int(found[2] or 0)


def _read_component(package: _Package, name: str, value: Any) -> Iterator[PackagedVariant]:
    where, folder = f"component {_show(name)}", package.root
    if isinstance(value, str):
        place = resolve_path(package, folder, value)
        place = place / _COMPONENT_FILE if place.is_dir() else place
        value, folder = _read_json(place), place.parent
    if not isinstance(value, Mapping):
        raise _bad(f"{where} is neither a path nor an object")
    for variant, body in _parse(_Component, value, where, strict=package.strict).variants.items():
        yield _read_variant(package, folder, variant, body)


def _read_variant(package: _Package, folder: Path, name: str, body: Any) -> PackagedVariant:
    where = f"variant {_show(name)}"
    variant = _parse(_Variant, body, where, strict=package.strict)
    home = _find_home(package, folder, name, variant.variant_directory)
    orders = variant.executor_info.get("ort", {})
    if isinstance(orders, str):
        orders = _read_json(resolve_path(package, home, orders))
    if not isinstance(orders, Mapping):
        raise _bad(f"executor_info of {where} is not an object")
    session = _parse(_Session, orders, where, strict=False)
    weights = session.session_options.get(_WEIGHTS, "")
    if not isinstance(weights, str):
        raise _bad(f"{_WEIGHTS} of {where} is not a string")
    return PackagedVariant(
        name=name,
        provider=variant.ep,
        compiled_for=variant.compatibility_string,
        model=resolve_path(package, home, session.model_file) if session.model_file else None,
        weights=resolve_path(package, home, weights) if weights else None,
    )


def _find_home(package: _Package, folder: Path, name: str, declared: str) -> Path:
    """The variant's folder. One that is not declared need not be there: then it has no files of its own."""
    if declared:
        return resolve_path(package, folder, declared)
    with contextlib.suppress(OSError):  # a name that no file system takes
        return resolve_path(package, folder, name if (folder / name).is_dir() else ".")
    return folder


def resolve_path(package: _Package, folder: Path, text: str) -> Path:
    """What a path of the package means: relative to `folder`, or inside a shared asset. Raises `ModelError`."""
    asset = _ASSET.fullmatch(text)
    if asset is None:
        return _confine(package.root, folder, text)
    home = _confine(
        package.root, package.root, package.assets.get(f"sha256:{asset[1]}", f"shared_assets/sha256-{asset[1]}")
    )
    if hash_folder(home) != asset[1]:
        raise _bad(f"the files of the shared asset {asset[1]} do not match this digest")
    return _confine(home, home, asset[2]) if asset[2] else home


def hash_folder(folder: Path) -> str:
    """The digest that names a shared asset: SHA-256 over a line `<SHA-256>  <path>` for each file, by path."""
    files = list_files(folder, f"the shared asset {_show(folder.name)}") if folder.is_dir() else {}
    if not files:
        raise _bad(f"the shared asset {_show(folder.name)} is missing")
    text = "".join(f"{digest_file(files[name])}  {name}\n" for name in sorted(files, key=os.fsencode))
    return hashlib.sha256(os.fsencode(text)).hexdigest()


def list_files(folder: Path, what: str) -> dict[str, Path]:
    """Every file in a folder of the package, by its path. Raises `ModelError` where something there is a link."""
    try:
        return find_files(folder)
    except (OSError, ValueError) as error:
        why = str(error) if isinstance(error, ValueError) else f"{_show(folder.name)}: {error.strerror}"
        raise _bad(f"{what} may hold only regular files: {why}") from error


def _confine(root: Path, folder: Path, text: Any) -> Path:
    if not isinstance(text, str) or not text or "\0" in text:
        raise _bad("a path is empty, or not a string")
    parts, windows = PurePosixPath(text), PureWindowsPath(text)
    if ".." in windows.parts or parts.is_absolute() or windows.drive or windows.root:
        raise _bad(f"the path {_show(text)} leaves the package")
    place = folder
    for part in parts.parts:
        place /= part
        try:
            mode = place.lstat().st_mode
        except (OSError, ValueError) as error:
            raise _bad(f"it has no {_show(text)}") from error
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            raise _bad(f"the path {_show(text)} leads through something other than a folder or a regular file")
    if not place.is_relative_to(root):
        raise _bad(f"the path {_show(text)} leaves the package")
    return place


def _read_json(path: Path) -> dict[str, Any]:
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise _bad(f"{_show(path.name)} is not a regular file")
        if status.st_size > _LARGEST:
            raise _bad(f"{_show(path.name)} is larger than {_LARGEST:,} bytes")
        data = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _bad(f"{_show(path.name)} cannot be read: {type(error).__name__}") from error
    if not isinstance(data, dict):
        raise _bad(f"{_show(path.name)} does not hold a JSON object")
    return data


def _parse(kind: type[P], data: Any, where: str, *, strict: bool) -> P:
    """`data` as a `kind`; unknown fields are refused where it is `strict`. Raises `ModelError`."""
    try:
        found = kind.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = first["loc"][0] if first["loc"] else ""
        if first["type"] == "missing":
            raise _bad(f"{where} has no {name}") from error
        what = f"{name} of {where}" if name else where
        raise _bad(f"{what} is not {'a string' if first['type'].startswith('string') else 'an object'}") from error
    if strict and found.model_extra:
        raise _bad(f"{where} has the unknown field {_show(min(found.model_extra))}")
    return found


def _show(text: str) -> str:
    """A package's text in a message: escaped, on one line, not long."""
    return ascii(text)[:120]


def _bad(why: str) -> ModelError:
    return ModelError(
        "the model package cannot be read",
        details=(why,),
        hint="create it again with a tool for ONNX Runtime 1.28 or later, or give the ONNX model in it",
    )
