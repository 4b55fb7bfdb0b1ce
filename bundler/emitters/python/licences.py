"""What a wheel says of its own licence, for the bill of materials and NOTICES."""

from __future__ import annotations

import contextlib
import zipfile
from dataclasses import replace
from email.message import Message
from pathlib import Path, PurePosixPath

from bundler.emitters.python.wheels import Wheel
from bundler.model.codec import decode
from bundler.model.errors import EnvironmentMissingError
from bundler.model.proof import Dependency
from bundler.support.remembered import recall, remember

FORMAT = 2
"""Raise it when a component is read from a wheel in another way."""

_METADATA = ".dist-info/METADATA"
_CLASSIFIER = "License :: OSI Approved :: "
_FILE_NAMES = ("licen", "notice", "copying", "thirdparty", "authors")
"""How the names of files with licence texts begin, where the metadata do not list them."""


def describe_wheel(wheel: Wheel, folder: str) -> Dependency:
    """The wheel as a component; `folder` is its place in the bundle, empty when it is not kept there.

    Raises `EnvironmentMissingError` when the file is no wheel. Its place in the cache is named by its digest, so what
    it says of itself is kept beside it.
    """
    kept, about = wheel.path.parent / f"component-{FORMAT}.json", f"component of {wheel.sha256}"
    component = _recall(kept, about)
    if component is None:
        component = _read_component(wheel)
        with contextlib.suppress(OSError):  # its failure costs the next build some milliseconds only
            remember(kept, component, about)
    return replace(component, file=f"{folder}/{wheel.path.name}" if folder else None)


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
            parts = tuple(_read_part(archive, wheel, place) for place in places if place != own)
            metadata = _read_metadata(archive, own)
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


def _read_part(archive: zipfile.ZipFile, wheel: Wheel, place: str) -> Dependency:
    """A distribution that the wheel has among its own modules. Its licences are the files beside its metadata."""
    metadata, folder = _read_metadata(archive, place), place.rpartition("/")[0]
    inside = [path for path in sorted(archive.namelist()) if path.startswith(f"{folder}/")]
    texts = [archive.read(path).decode("utf-8", "replace") for path in inside if _is_named_licence(path)]
    return Dependency(
        name=str(metadata["Name"]),
        version=str(metadata["Version"]),
        licence=_find_licence(metadata),
        licence_text="\n\n".join(map(str.strip, texts)),
        purl=_purl(metadata),
        sha256=None,
        file=f"{wheel.path.name}/{folder}",
    )


def _purl(metadata: Message) -> str:
    return f"pkg:pypi/{str(metadata['Name']).lower().replace('_', '-')}@{metadata['Version']}"


def _read_metadata(archive: zipfile.ZipFile, place: str) -> Message:
    from email.parser import BytesParser  # noqa: PLC0415 (what a wheel says is read once, then kept)

    return BytesParser().parsebytes(archive.read(place), headersonly=True)


def _find_licence(metadata: Message) -> str:
    """The SPDX expression where there is one, else the classifier, else the first line of the free text."""
    expression = metadata["License-Expression"]
    if expression:
        return str(expression)
    for classifier in metadata.get_all("Classifier", []):
        if classifier.startswith(_CLASSIFIER):
            return str(classifier).removeprefix(_CLASSIFIER)
    text = str(metadata["License"] or "").strip()
    return text.splitlines()[0] if text else "unknown"


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
