"""What a finished Python bundle is, found by looking at it: format, package, configuration, Python versions."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path

from bundler.emitters.payload import PAYLOAD
from bundler.emitters.python.wheelhouse import list_minor_versions, read_lock
from bundler.environments.lockfiles import Lock
from bundler.model.codec import decode
from bundler.model.errors import VerificationError
from bundler.model.runtime import RuntimeConfig

LOCK = "requirements.lock"
WHEELS = "wheels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A bundle as it lies there. `artifact` is the packed file, None for the `dir` format; `python_versions` are those
    that it can be installed for, in ascending order.
    """

    root: Path
    format: str
    package: str
    artifact: Path | None
    config: RuntimeConfig
    python_versions: tuple[str, ...]

    @property
    def lock(self) -> Lock:
        """The lock file: every wheel of the runtime with its digests. Raises `VerificationError`."""
        return read_lock((self.root / LOCK).read_text("utf-8"))


def read_layout(bundle: Path) -> Layout:
    """Look at `bundle`. Raises `VerificationError` when it is no Python bundle or lacks a part."""
    try:
        for artifact in sorted((*bundle.glob("*.whl"), *bundle.glob("*.pex"))):
            return _read_packed(bundle, artifact)
        return _read_folder(bundle)
    except (OSError, KeyError, TypeError, ValueError, StopIteration, zipfile.BadZipFile) as error:
        raise VerificationError(
            f"{bundle} is not a whole Python bundle",
            hint="build it again",
            details=(f"{type(error).__name__}: {error}",),
        ) from error


def _read_folder(bundle: Path) -> Layout:
    file = next(iter(sorted(bundle.glob(f"*/{PAYLOAD}/runtime.json"))))
    return Layout(
        root=bundle,
        format="dir",
        package=file.parent.parent.name,
        artifact=None,
        config=_decode(file.read_bytes()),
        python_versions=list_minor_versions([path.name for path in (bundle / WHEELS).glob("*.whl")]),
    )


def _read_packed(bundle: Path, artifact: Path) -> Layout:
    with zipfile.ZipFile(artifact) as archive:
        if artifact.suffix == ".whl":
            package, config = _read_payload(archive)
            versions = _versions_of_wheel(archive)
        else:
            package, config = _read_nested(archive)
            versions = _versions_of_pex(archive)
    return Layout(
        root=bundle,
        format="wheel" if artifact.suffix == ".whl" else "pex",
        package=package,
        artifact=artifact,
        config=config,
        python_versions=versions,
    )


def _read_payload(wheel: zipfile.ZipFile) -> tuple[str, RuntimeConfig]:
    name = next(name for name in wheel.namelist() if name.endswith(f"/{PAYLOAD}/runtime.json"))
    return name.split("/")[0], _decode(wheel.read(name))


def _read_nested(archive: zipfile.ZipFile) -> tuple[str, RuntimeConfig]:
    """The packed file holds wheels; the model is in the one that has a payload."""
    for name in archive.namelist():
        if "-py3-none-" in name and name.endswith(".whl"):
            with archive.open(name) as stream, zipfile.ZipFile(stream) as wheel:
                if any(inner.endswith(f"/{PAYLOAD}/runtime.json") for inner in wheel.namelist()):
                    return _read_payload(wheel)
    raise KeyError("no payload")


def _decode(text: bytes) -> RuntimeConfig:
    return decode(RuntimeConfig, json.loads(text))


def _versions_of_pex(archive: zipfile.ZipFile) -> tuple[str, ...]:
    return list_minor_versions(list(json.loads(archive.read("PEX-INFO"))["distributions"]))


def _versions_of_wheel(archive: zipfile.ZipFile) -> tuple[str, ...]:
    """As its classifiers tell."""
    name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    classifiers = BytesParser().parsebytes(archive.read(name)).get_all("Classifier", [])
    return tuple(line.rpartition(" ")[2] for line in classifiers if re.search(r":: 3\.\d+$", line))
