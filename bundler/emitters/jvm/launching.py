"""A finished bundle for the JVM, and how its jar is started on a device."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bundler.devices.contract import Command, Device, Need
from bundler.emitters.jvm.maven import check_pom
from bundler.emitters.payload import CONFIG_NAME, PAYLOAD
from bundler.emitters.reports import Ending, Recorded, read_ending, read_packed_sets
from bundler.execution.temporary import temporary_folder
from bundler.model.digests import digest_file
from bundler.model.errors import VerificationError
from bundler.model.runtime import RuntimeComponent, RuntimeConfig
from bundler.support.text import describe_fault
from bundler.verification.archives import list_entries, read_entry, unpack_folder
from bundler.verification.configuration import MAX_BYTES, load_config
from bundler.verification.streams import INDEX

TIME_LIMIT: Final = 1800.0
"""Seconds for the golden set of all variants."""

QUIET: Final = ("-XX:-UsePerfData", "-XX:+UseSerialGC")
"""No file of its own in the temporary folder, and no threads that a short run does not need."""

_BROKEN: Final = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    zipfile.BadZipFile,
    zlib.error,
    RuntimeError,
    NotImplementedError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenJar:
    """The jar of a bundle with the package of its classes, its `runtime.json` with the digest of that, and the golden
    sets in it by component.
    """

    jar: Path
    package: str
    sha256: str
    config: RuntimeConfig
    recorded: Mapping[str, Recorded]

    def find_golden(self, component: RuntimeComponent, scratch: Path) -> Path:
        """The index of a component's golden set, unpacked below `scratch`. Raises `ValueError` or `OSError` for a
        damaged jar.
        """
        folder = f"{self.package.replace('.', '/')}/{PAYLOAD}/{component.golden}"
        if not (scratch / folder).exists():
            unpack_folder(self.jar, folder, scratch)
        return scratch / folder / INDEX

    @property
    def need(self) -> Need:
        """A Java virtual machine on a machine of the kind that the bundle is for."""
        requires = self.config.pairs[0][1].requires
        return Need(runs="classes", systems=requires.systems, machines=requires.machines, target=self.config.target)


def open_jar(bundle: Path) -> OpenJar:
    """Look at `bundle`. Raises `VerificationError` when it is no whole bundle of this kind."""
    try:
        jars = sorted(bundle.glob("*.jar"), key=lambda path: len(path.name))  # that of the sources has a longer name
        if [path.name for path in jars[1:]] != [f"{path.stem}-sources.jar" for path in jars[:1]] or not jars:
            raise ValueError(f"it has {len(jars)} jars, not one with classes and one with their sources")
        list_entries(jars[0])  # each entry once, and none that leads out
        with zipfile.ZipFile(jars[0]) as archive:
            _check_poms(jars[0], archive)
            return _read_payload(bundle, jars[0], archive)
    except _BROKEN as error:
        raise VerificationError(
            f"{bundle} is not a complete bundle for Java",
            details=(describe_fault(error),),
            hint="build it again",
        ) from error


def _check_poms(jar: Path, archive: zipfile.ZipFile) -> None:
    """The POM beside the jar, which a build reads, and that in the jar are one."""
    with jar.with_suffix(".pom").open("rb") as stream:
        pom = stream.read(MAX_BYTES)
    check_pom(pom)
    inside = [entry for entry in archive.infolist() if entry.filename.endswith("/pom.xml")]
    if [entry.file_size for entry in inside] != [len(pom)] or archive.read(inside[0]) != pom:
        raise ValueError(f"the POM in the jar is not {jar.with_suffix('.pom').name}")


def _read_payload(bundle: Path, jar: Path, archive: zipfile.ZipFile) -> OpenJar:
    """The configuration, held to what bundler writes: with its files in a folder of their own."""
    ending = f"{PAYLOAD}/{CONFIG_NAME}"
    (name,) = (entry for entry in archive.namelist() if entry.endswith(f"/{ending}"))
    root = name.removesuffix(ending)
    with temporary_folder("payload") as scratch:
        for entry in archive.infolist():
            if entry.filename.startswith(root) and not entry.is_dir():
                _unpack(archive, entry, Path(scratch), entry.filename.removeprefix(root))
        config, sha256 = load_config(bundle, Path(scratch) / ending), digest_file(Path(scratch) / ending)
    return OpenJar(
        jar=jar,
        package=root.strip("/").replace("/", "."),
        sha256=sha256,
        config=config,
        recorded=read_packed_sets(archive, f"{root}{PAYLOAD}", config),
    )


def _unpack(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path, path: str) -> None:
    """Only the configuration has its bytes: of the others it matters that they are there."""
    target = folder / path
    if not path.startswith(f"{PAYLOAD}/"):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if not path.endswith(f"/{CONFIG_NAME}"):
        target.touch()
        return
    target.write_bytes(read_entry(archive, entry.filename, MAX_BYTES))


def start(opened: OpenJar, device: Device, arguments: tuple[str, ...]) -> Ending:
    """Run one command of the jar."""
    device.put(opened.jar.parent)
    outcome = device.run(
        Command(argv=(*QUIET, "-jar", device.put(opened.jar), *arguments, "--json"), seconds=TIME_LIMIT)
    )
    return read_ending(outcome)
