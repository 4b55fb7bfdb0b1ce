"""What a finished Python bundle is, found by looking at it: format, package, configuration, Python versions."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path

from bundler.emitters.payload import PAYLOAD
from bundler.emitters.python.wheelhouse import list_minor_versions, read_lock
from bundler.emitters.reports import Recorded, read_packed_sets, read_recorded_sets
from bundler.environments.lockfiles import Lock
from bundler.model.codec import decode, parse_json
from bundler.model.errors import VerificationError
from bundler.model.runtime import RuntimeComponent, RuntimeConfig
from bundler.model.upgrading import upgrade_runtime
from bundler.support.text import describe_fault
from bundler.verification.archives import read_entry, unpack_folder
from bundler.verification.configuration import MAX_BYTES
from bundler.verification.streams import INDEX

LOCK = "requirements.lock"
PIPELINE_LOCK = "pipeline.lock"
"""What the user's own pipeline needs besides: its packages are not in the bundle."""
WHEELS = "wheels"

_BROKEN = (
    *(OSError, EOFError, LookupError, TypeError, ValueError, AttributeError, StopIteration),
    *(zipfile.BadZipFile, zlib.error),
    RuntimeError,  # JSON that is nested without end, or a packed file with a password
)
"""What reading a damaged bundle may raise."""


Payload = tuple[str, RuntimeConfig, Mapping[str, Recorded]]
"""The package's name, its configuration, and its golden sets by component."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A finished bundle. `artifact` is the packed file, None for the `dir` format; `python_versions` are those
    that it can be installed for, in ascending order. `recorded` are the golden sets by component.
    """

    root: Path
    format: str
    package: str
    artifact: Path | None
    config: RuntimeConfig
    python_versions: tuple[str, ...]
    recorded: Mapping[str, Recorded]

    def find_golden(self, component: RuntimeComponent, scratch: Path) -> Path:
        """The index of a component's golden set; out of a packed file it is unpacked below `scratch`. Raises
        `ValueError` or `OSError` for a damaged archive.
        """
        folder = f"{self.package}/{PAYLOAD}/{component.golden}"
        if self.artifact is None:
            return self.root / folder / INDEX
        if not (scratch / folder).exists():
            unpack_folder(self.artifact, folder, scratch)
        return scratch / folder / INDEX

    @property
    def lock(self) -> Lock:
        """The lock file: every wheel of the runtime with its digests. Raises `VerificationError`."""
        return _read_lock(self.root, LOCK)

    @property
    def pipeline_lock(self) -> Lock:
        """What the pipeline needs besides; without pins where it needs nothing. Raises `VerificationError`."""
        if not (self.root / PIPELINE_LOCK).is_file():
            return Lock(name=PIPELINE_LOCK, pins=())
        return _read_lock(self.root, PIPELINE_LOCK)


def _read_lock(root: Path, name: str) -> Lock:
    try:
        text = (root / name).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise _broken(root, error) from error
    return read_lock(text, name)


def read_layout(bundle: Path) -> Layout:
    """Look at `bundle`. Raises `VerificationError` when it is no Python bundle or lacks a part."""
    try:
        for artifact in sorted((*bundle.glob("*.whl"), *bundle.glob("*.pex"))):
            return _read_packed(bundle, artifact)
        return _read_folder(bundle)
    except _BROKEN as error:
        raise _broken(bundle, error) from error


def _broken(bundle: Path, error: Exception) -> VerificationError:
    return VerificationError(
        f"{bundle} is not a complete Python bundle",
        hint="build it again",
        details=(describe_fault(error),),
    )


def _read_folder(bundle: Path) -> Layout:
    file = next(iter(sorted(bundle.glob(f"*/{PAYLOAD}/runtime.json"))))
    config = _decode(file.read_bytes())
    return Layout(
        root=bundle,
        format="dir",
        package=file.parent.parent.name,
        artifact=None,
        config=config,
        recorded=read_recorded_sets(file.parent, config),
        python_versions=list_minor_versions([path.name for path in (bundle / WHEELS).glob("*.whl")]),
    )


def _read_packed(bundle: Path, artifact: Path) -> Layout:
    with zipfile.ZipFile(artifact) as archive:
        if artifact.suffix == ".whl":
            package, config, recorded = _read_payload(archive)
            versions = _versions_of_wheel(archive)
        else:
            package, config, recorded = _read_nested(archive)
            versions = _versions_of_pex(archive)
    return Layout(
        root=bundle,
        format="wheel" if artifact.suffix == ".whl" else "pex",
        package=package,
        artifact=artifact,
        config=config,
        recorded=recorded,
        python_versions=versions,
    )


def _read_payload(wheel: zipfile.ZipFile) -> Payload:
    name = next(name for name in wheel.namelist() if name.endswith(f"/{PAYLOAD}/runtime.json"))
    config, folder = _decode(read_entry(wheel, name, MAX_BYTES)), name.rpartition("/")[0]
    return name.split("/")[0], config, read_packed_sets(wheel, folder, config)


def _read_nested(archive: zipfile.ZipFile) -> Payload:
    """The packed file holds wheels; the model is in the one that has a payload."""
    for name in archive.namelist():
        if "-py3-none-" in name and name.endswith(".whl"):
            with archive.open(name) as stream, zipfile.ZipFile(stream) as wheel:
                if any(inner.endswith(f"/{PAYLOAD}/runtime.json") for inner in wheel.namelist()):
                    return _read_payload(wheel)
    raise KeyError("no payload")


def _decode(text: bytes) -> RuntimeConfig:
    config = decode(RuntimeConfig, upgrade_runtime(parse_json(text)))
    for component, variant in config.pairs:
        if not all(isinstance(name, str) for name in (*variant.requires.systems, *variant.requires.machines)):
            label = config.label(component.name, variant.name)
            raise ValueError(f"variant {label!r} has a system that is not text")
    if not config.components or not all(component.variants for component in config.components):
        raise ValueError("runtime.json has no variant")
    return config


def _versions_of_pex(archive: zipfile.ZipFile) -> tuple[str, ...]:
    return list_minor_versions(list(parse_json(read_entry(archive, "PEX-INFO", MAX_BYTES))["distributions"]))


def _versions_of_wheel(archive: zipfile.ZipFile) -> tuple[str, ...]:
    """The versions in its classifiers."""
    name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    classifiers = BytesParser().parsebytes(read_entry(archive, name, MAX_BYTES)).get_all("Classifier", [])
    return tuple(line.rpartition(" ")[2] for line in classifiers if re.search(r":: 3\.\d+$", line))
