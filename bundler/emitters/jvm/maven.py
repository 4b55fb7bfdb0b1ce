"""Artifacts of Maven repositories: fetched by Maven itself with the user's own configuration, kept by digest.

Nothing of them is run while they are fetched: Maven copies the files of a list, and resolves nothing beyond it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from xml.parsers import expat

from bundler.environments.lockfiles import Lock, Pin
from bundler.environments.registry import Environments
from bundler.environments.tools import run_tool
from bundler.execution.temporary import temporary_folder
from bundler.model.digests import digest_file
from bundler.model.errors import DefectError, EnvironmentMissingError
from bundler.model.events import SILENT, Reporter
from bundler.support.files import replacing
from bundler.support.remembered import BEHIND, mark_used
from bundler.toolchains.java import MAVEN
from bundler.toolchains.registry import find_toolchain

KEPT: Final = "packages/maven"
"""Where artifacts are kept below the cache root."""

_COORDINATES: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*:[A-Za-z0-9][A-Za-z0-9._-]*(:aar)?", re.ASCII)
_VERSION: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*", re.ASCII)
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_SETTINGS: Final = ("MAVEN_*", "M2_HOME", "JAVA_HOME", "JDK_JAVA_OPTIONS")
"""Variables by which a user configures Maven."""


@dataclass(frozen=True, slots=True)
class MavenArtifacts:
    """Artifacts as the source of a lock: `group:name` (`group:name:aar` for an Android archive), and the version."""

    artifacts: tuple[tuple[str, str], ...]

    def resolve(self, name: str, environments: Environments, reporter: Reporter) -> Lock:
        """The lock `name` of what the repositories give now; the files are kept, too.

        Raises `EnvironmentMissingError`.
        """
        pins = tuple(Pin(name=key, version=version, marker="", hashes=()) for key, version in self.artifacts)
        with _download(pins, environments, reporter) as files:
            locked = tuple(replace(pin, hashes=(digest_file(files[pin.name]),)) for pin in pins)
            for pin in locked:
                _keep(files[pin.name], _place(environments.root, pin))
        return Lock(name=name, pins=locked)


def fetch_artifacts(lock: Lock, environments: Environments, reporter: Reporter = SILENT) -> dict[str, Path]:
    """The file of each artifact in `lock`, by its name there.

    Raises `EnvironmentMissingError` when one is neither cached nor available, or is not the locked one.
    """
    found = {pin.name: _find(pin, environments) for pin in lock.pins}
    missing = [pin for pin in lock.pins if found[pin.name] is None]
    if missing:
        with _download(missing, environments, reporter) as files:
            for pin in missing:
                _check(pin, files[pin.name])
                found[pin.name] = _keep(files[pin.name], _place(environments.root, pin))
    for pin in lock.pins:
        mark_used(_place(environments.root, pin))
    return {name: path for name, path in found.items() if path is not None}


def check_pom(content: bytes) -> None:
    """Raise `ValueError` for a POM that declares a document type or is not XML: no POM needs one, and entities that it
    declares can read files of the machine that builds with it.
    """
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse_document_type
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise ValueError(f"the POM is not XML: {error}") from error


def _refuse_document_type(*_: object) -> None:
    raise ValueError("the POM declares a document type (DOCTYPE)")


def _place(root: Path, pin: Pin) -> Path:
    """The folder of an artifact below a cache's root."""
    return root / KEPT / pin.hashes[0][:2] / pin.hashes[0]


def _file_name(pin: Pin) -> str:
    """`onnxruntime-1.28.0.jar`, as Maven names it."""
    _, name, *kind = pin.name.split(":")
    return f"{name}-{pin.version}.{kind[0] if kind else 'jar'}"


def _find(pin: Pin, environments: Environments) -> Path | None:
    """The kept file, when it is there and whole."""
    for root in (environments.root, environments.root / BEHIND):
        path = _place(root, pin) / _file_name(pin)
        try:
            if digest_file(path) in pin.hashes:
                return path
        except OSError:
            continue
    return None


def _keep(source: Path, place: Path) -> Path:
    """Move a fetched file to its place by digest."""
    place.mkdir(parents=True, exist_ok=True)
    kept = place / source.name
    with replacing(kept) as draft:
        source.replace(draft)
    return kept


def _check(pin: Pin, path: Path) -> None:
    sha256 = digest_file(path)
    if sha256 not in pin.hashes:
        raise EnvironmentMissingError(
            f"the artifact {pin.name} {pin.version} that Maven fetched is not the one in the lock",
            details=(f"locked sha256:{pin.hashes[0]}", f"fetched sha256:{sha256}"),
            hint="find out who altered it: a published version never changes",
        )


@contextmanager
def _download(pins: Sequence[Pin], environments: Environments, reporter: Reporter) -> Iterator[dict[str, Path]]:
    """The artifacts' files in a passing folder, by name."""
    maven = find_toolchain(MAVEN.name)
    root = environments.root / KEPT
    root.mkdir(parents=True, exist_ok=True)
    what = ", ".join(f"{pin.name.split(':')[1]} {pin.version}" for pin in pins)
    reporter.say(f"fetching {what} with Maven")
    with temporary_folder("maven", otherwise=root) as scratch:
        folder = Path(scratch)
        project = folder / "pom.xml"
        project.write_text(_write_project(pins), "utf-8")
        command = (str(maven.program), "-q", "-B", "-f", str(project), _COPY, f"-DoutputDirectory={folder / 'files'}")
        run_tool(command, f"fetch {what}", "Maven", variables=_SETTINGS)
        files = {pin.name: folder / "files" / _file_name(pin) for pin in pins}
        absent = [name for name, path in files.items() if not path.is_file()]
        if absent:
            raise EnvironmentMissingError(f"Maven fetched no file for {', '.join(absent)}")
        yield files


def _write_project(pins: Sequence[Pin]) -> str:
    """A project that depends on these artifacts, and on nothing that they depend on."""
    for pin in pins:
        if not _COORDINATES.fullmatch(pin.name) or not _VERSION.fullmatch(pin.version):
            raise DefectError(f"{pin.name[:80]!r} {pin.version[:80]!r} are not coordinates of an artifact")
    dependencies = "\n".join(map(_write_dependency, pins))
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>\n'
        "<groupId>bundle</groupId><artifactId>fetch</artifactId><version>1</version>\n"
        f"<dependencies>\n{dependencies}\n</dependencies></project>\n"
    )


def _write_dependency(pin: Pin) -> str:
    group, name, *kind = pin.name.split(":")
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{pin.version}</version>"
        f"<type>{kind[0] if kind else 'jar'}</type>"
        "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
    )
