"""A finished bundle for the JVM, and how its jar is started on a device."""

from __future__ import annotations

import shutil
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bundler.devices.contract import Command, Device, Need, Outcome
from bundler.emitters.jvm.maven import check_pom
from bundler.emitters.payload import CONFIG_NAME, PAYLOAD
from bundler.execution.temporary import temporary_folder
from bundler.model.codec import parse_json
from bundler.model.errors import VerificationError
from bundler.model.runtime import RuntimeConfig
from bundler.support.processes import name_signal
from bundler.verification.archives import list_entries
from bundler.verification.configuration import MAX_BYTES, load_config

TIME_LIMIT: Final = 1800.0
"""Seconds for the golden set of all variants."""

UNREADABLE: Final = (LookupError, TypeError, ValueError, AttributeError)
"""What reading the output of an untrusted program may raise."""

_QUIET: Final = ("-XX:-UsePerfData", "-XX:+UseSerialGC")
"""No file of its own in the temporary folder, and no threads that a short run does not need."""

_ENDINGS: Final = (0, 1)
"""The exit codes of a program that reports: all passed, or some failed."""

_BROKEN: Final = (OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenJar:
    """The jar of a bundle, and what its `runtime.json` says."""

    jar: Path
    config: RuntimeConfig

    @property
    def need(self) -> Need:
        """A Java virtual machine on a machine of the kind that the bundle is for."""
        requires = self.config.pairs[0][1].requires
        return Need(runs="classes", systems=requires.systems, machines=requires.machines, target=self.config.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What the jar's program reported by component and variant. `failure` says why there is no report."""

    outcomes: Mapping[tuple[str, str], Mapping[str, Any]]
    failure: str | None
    seconds: float


def open_jar(bundle: Path) -> OpenJar:
    """Look at `bundle`. Raises `VerificationError` when it is no whole bundle of this kind."""
    try:
        jars = sorted(bundle.glob("*.jar"), key=lambda path: len(path.name))  # that of the sources has a longer name
        if [path.name for path in jars[1:]] != [f"{path.stem}-sources.jar" for path in jars[:1]] or not jars:
            raise ValueError(f"it has {len(jars)} jars, not one with classes and one with their sources")
        _check_poms(jars[0])
        return OpenJar(jar=jars[0], config=_read_config(bundle, jars[0]))
    except _BROKEN as error:
        raise VerificationError(
            f"{bundle} is not a complete bundle for Java",
            details=(f"{type(error).__name__}: {error}",),
            hint="build it again",
        ) from error


def _check_poms(jar: Path) -> None:
    """The POM beside the jar, which a build reads, and that in the jar are one."""
    with jar.with_suffix(".pom").open("rb") as stream:
        pom = stream.read(MAX_BYTES)
    check_pom(pom)
    with zipfile.ZipFile(jar) as archive:
        inside = [entry for entry in archive.infolist() if entry.filename.endswith("/pom.xml")]
        if [entry.file_size for entry in inside] != [len(pom)] or archive.read(inside[0]) != pom:
            raise ValueError(f"the POM in the jar is not {jar.with_suffix('.pom').name}")


def _read_config(bundle: Path, jar: Path) -> RuntimeConfig:
    """The configuration in the jar, held to what bundler writes: with its files in a folder of their own."""
    list_entries(jar)  # each entry once, and none that leads out
    with zipfile.ZipFile(jar) as archive, temporary_folder("payload") as scratch:
        ending = f"{PAYLOAD}/{CONFIG_NAME}"
        (name,) = (entry for entry in archive.namelist() if entry.endswith(f"/{ending}"))
        root = name.removesuffix(ending)
        folder = Path(scratch)
        for entry in archive.infolist():
            if entry.filename.startswith(root) and not entry.is_dir():
                _unpack(archive, entry, folder, entry.filename.removeprefix(root))
        return load_config(bundle, folder / ending)


def _unpack(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path, path: str) -> None:
    """Only the configuration has its bytes: of the others it matters that they are there."""
    target = folder / path
    if not path.startswith(f"{PAYLOAD}/"):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if not path.endswith(f"/{CONFIG_NAME}"):
        target.touch()
        return
    if entry.file_size > MAX_BYTES:
        raise ValueError(f"{path} has {entry.file_size} bytes, which is more than {MAX_BYTES}")
    with archive.open(entry) as reader, target.open("wb") as writer:
        shutil.copyfileobj(reader, writer)


def start(opened: OpenJar, device: Device, arguments: tuple[str, ...]) -> Ending:
    """Run one command of the jar."""
    device.put(opened.jar.parent)
    outcome = device.run(
        Command(argv=(*_QUIET, "-jar", device.put(opened.jar), *arguments, "--json"), seconds=TIME_LIMIT)
    )
    return read_ending(outcome)


def read_ending(outcome: Outcome) -> Ending:
    """What the program reported on its standard output."""
    if outcome.code is None:
        failure = f"it did not finish within {TIME_LIMIT:.0f} s"
        return Ending(outcomes={}, failure=failure, seconds=outcome.seconds)
    report = _parse(outcome.output)
    try:
        if outcome.code not in _ENDINGS:
            raise ValueError(outcome.code)
        found = {(item["component"], item["variant"]): item for item in report["variants"]}
    except UNREADABLE:
        return Ending(outcomes={}, failure=_explain(outcome, outcome.code, report), seconds=outcome.seconds)
    return Ending(outcomes=found, failure=None, seconds=outcome.seconds)


def _parse(text: str) -> dict[str, Any]:
    try:
        report = parse_json(text)
    except ValueError:
        return {}
    return report if isinstance(report, dict) else {}


def _explain(outcome: Outcome, code: int, report: Mapping[str, Any]) -> str:
    error = report.get("error")
    if isinstance(error, dict) and error.get("message"):
        return f"{error['message']} ({error['why']})" if error.get("why") else str(error["message"])
    last = (outcome.errors.strip().splitlines() or ["no output"])[-1]
    if code < 0:
        return f"it was terminated by {name_signal(-code)}: {last}"
    return f"it exited with code {code}: {last}"
