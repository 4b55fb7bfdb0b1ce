"""What a wheel says of its own licence, for the bill of materials and NOTICES."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from email.message import Message
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from bundler.emitters.components import describe_required
from bundler.emitters.python.wheels import Wheel
from bundler.environments.lockfiles import Pin
from bundler.model.codec import decode
from bundler.model.errors import EnvironmentMissingError
from bundler.model.proof import Dependency
from bundler.support.remembered import recall, remember

FORMAT = 3
"""Raise it when a component is read from a wheel in another way."""

_METADATA = ".dist-info/METADATA"
_CLASSIFIER = "License :: OSI Approved :: "
_SPDX: Mapping[str, str] = MappingProxyType(
    {
        "3-Clause BSD License": "BSD-3-Clause",
        "Apache 2.0": "Apache-2.0",
        "Apache License 2.0": "Apache-2.0",
        "ISC License (ISCL)": "ISC",
        "MIT License": "MIT",
        "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    }
)
"""Names of licences that leave no doubt, and their identifiers; `BSD License` is one of several."""

_INDEX = "a package index"
DEPENDENCIES = ".deps"
_BOOTSTRAP = ".bootstrap"
_VENDORED = "pex/vendor/_vendored"
"""Folders of a packed file, as its packager names them."""

_FILE_NAMES = ("licen", "notice", "copying", "thirdparty", "authors")
"""How the names of files with licence texts begin, where the metadata do not list them."""


def describe_wheel(wheel: Wheel, folder: str) -> Dependency:
    """The wheel as a component; `folder` is its place in the bundle, empty when a package index provides it.

    Raises `EnvironmentMissingError` when the file is no wheel. Its place in the cache is named by its digest, so what
    it says of itself is kept beside it.
    """
    kept, about = wheel.path.parent / f"component-{FORMAT}.json", f"component of {wheel.sha256}"
    component = _recall(kept, about)
    if component is None:
        component = _read_component(wheel)
        with contextlib.suppress(OSError):  # its failure costs the next build some milliseconds only
            remember(kept, component, about)
    if not folder:
        return replace(component, parts=(), provided_by=_INDEX)
    place = f"{folder}/{wheel.path.name}"
    parts = tuple(replace(part, file=f"{place}/{part.file}") for part in component.parts)
    return replace(component, file=place, parts=parts)


def describe_pin(pin: Pin) -> Dependency:
    """A locked package that the bundle does not contain."""
    return describe_required(pin.name, pin.version, "pypi", _INDEX)


def describe_packed(wheels: Sequence[Wheel], package: Path, target: Path) -> tuple[Dependency, ...]:
    """The wheels in the packed file `target`, and what its packager adds: its own modules, and those that it has
    vendored as far as they are there. `package` is the packager's folder.
    """
    own = next(package.parent.glob(f"{package.name}-*.dist-info"))
    with zipfile.ZipFile(target) as archive:
        names = frozenset(archive.namelist())
    parts = tuple(
        _read_distribution(info, f"{target.name}/{place}")
        for info in sorted((package.parent / _VENDORED).glob("*/*.dist-info"))
        if (place := _find_modules(info, names))
    )
    packager = replace(_read_distribution(own, f"{target.name}/{_BOOTSTRAP}"), parts=parts)
    return (*(describe_wheel(wheel, f"{target.name}/{DEPENDENCIES}") for wheel in wheels), packager)


def _find_modules(info: Path, names: AbstractSet[str]) -> str:
    """The first module or folder of a vendored distribution in a packed file with these names; empty without one."""
    folder = f"{_BOOTSTRAP}/{_VENDORED}/{info.parent.name}"
    listed = (line.partition(",")[0] for line in (info / "RECORD").read_text("utf-8").splitlines())
    found = (f"{folder}/{path.partition('/')[0]}" for path in listed if f"{folder}/{path}" in names)
    return next(found, "")


def _recall(kept: Path, about: str) -> Dependency | None:
    try:
        return decode(Dependency, recall(kept, about))
    except (KeyError, TypeError, AttributeError):
        return None


def _read_component(wheel: Wheel) -> Dependency:
    try:
        with zipfile.ZipFile(wheel.path) as archive:
            places = sorted(name for name in archive.namelist() if name.endswith(_METADATA))
            (own,) = (place for place in places if place.count("/") == 1)
            folders = [place.rpartition("/")[0] for place in places if place != own]
            parts = tuple(_read_distribution(zipfile.Path(archive, f"{folder}/"), folder) for folder in folders)
            metadata = _read_metadata(archive.read(own))
            text = _read_texts(archive, metadata)
    except (zipfile.BadZipFile, ValueError) as error:
        raise EnvironmentMissingError(
            f"{wheel.path.name} is not a wheel", hint="clear the cache and build again"
        ) from error
    return Dependency(
        name=str(metadata["Name"]),
        version=str(metadata["Version"]),
        licence=_find_licence(metadata),
        licence_text=text,
        purl=f"{_purl(metadata)}?file_name={wheel.path.name}",
        sha256=wheel.sha256,
        file=None,
        parts=parts,
    )


def _read_distribution(info: Traversable, place: str) -> Dependency:
    """A distribution that another has among its own modules, by the folder of its metadata, where its licences are."""
    metadata = _read_metadata((info / "METADATA").read_bytes())
    texts = [file.read_bytes().decode("utf-8", "replace") for file in _walk(info) if _is_named_licence(file.name)]
    return Dependency(
        name=str(metadata["Name"]),
        version=str(metadata["Version"]),
        licence=_find_licence(metadata),
        licence_text="\n\n".join(map(str.strip, texts)),
        purl=_purl(metadata),
        sha256=None,
        file=place,
    )


def _walk(folder: Traversable) -> Iterator[Traversable]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _walk(entry)
        else:
            yield entry


def _purl(metadata: Message) -> str:
    return f"pkg:pypi/{str(metadata['Name']).lower().replace('_', '-')}@{metadata['Version']}"


def _read_metadata(content: bytes) -> Message:
    from email.parser import BytesParser  # noqa: PLC0415 (what a wheel says is read once, then kept)

    return BytesParser().parsebytes(content, headersonly=True)


def _find_licence(metadata: Message) -> str:
    """The SPDX expression where there is one or a name stands for one, else the classifiers, else the first line of the
    free text.
    """
    expression = metadata["License-Expression"]
    if expression:
        return str(expression)
    text = str(metadata["License"] or "").strip().partition("\n")[0]
    listed = [str(name) for name in metadata.get_all("Classifier", []) if name.startswith(_CLASSIFIER)]
    classified = ", ".join(name.removeprefix(_CLASSIFIER) for name in listed)
    found = _find_expression(text) or _find_expression(classified)
    return found or classified or text or "unknown"


def _find_expression(name: str) -> str:
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression  # noqa: PLC0415 (as above)

    try:
        return canonicalize_license_expression(_SPDX.get(name, name))
    except InvalidLicenseExpression:
        return ""


def _read_texts(archive: zipfile.ZipFile, metadata: Message) -> str:
    """All licence files of the wheel, each below its name."""
    listed = {str(name) for name in metadata.get_all("License-File", [])}
    paths = [path for path in sorted(archive.namelist()) if _is_licence(path, listed)]
    return "\n\n".join(f"{_short(path)}:\n\n{archive.read(path).decode('utf-8', 'replace').strip()}" for path in paths)


def _is_licence(path: str, listed: set[str]) -> bool:
    if ".dist-info/" not in path and path.count("/") != 1:
        return False  # thousands of modules: no path object for each
    pure = PurePosixPath(path)
    inside = next((i for i, part in enumerate(pure.parts) if part.endswith(".dist-info")), None)
    relative = str(PurePosixPath(*pure.parts[inside + 1 :])) if inside is not None else ""
    if relative and (relative in listed or relative.removeprefix("licenses/") in listed):
        return True
    shallow = inside is not None or len(pure.parts) == 2  # noqa: PLR2004 (beside the package's own modules)
    return shallow and _is_named_licence(path)


def _is_named_licence(path: str) -> bool:
    return path.rpartition("/")[2].lower().startswith(_FILE_NAMES)


def _short(path: str) -> str:
    parts = PurePosixPath(path).parts
    return "/".join(part for part in parts if not part.endswith(".dist-info") and part != "licenses")
