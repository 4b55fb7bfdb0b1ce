"""What the libraries in a bundle's wheels import, they carry, the system has, or the provider's file requires."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lief
import pytest

from bundler.emitters.python.profile import PythonSettings
from bundler.emitters.python.wheelhouse import NUMPY, name_runtime_lock
from bundler.emitters.python.wheels import fetch_wheels
from bundler.environments.lockfiles import Lock, shipped_lock
from bundler.environments.registry import Environments
from bundler.profiles.resolve import resolve_target, target_ids
from bundler.providers.registry import find_provider, provider_names
from tests.support.bundles import cache_root

pytestmark = pytest.mark.slow

HUGE = frozenset({("onnxruntime-gpu", "linux")})
"""A quarter of a gigabyte each: they are not examined."""

LINUX = frozenset(
    (
        *("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1"),
        *("libpthread.so.0", "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1"),
    )
)
"""What a wheel with a tag of manylinux may expect of every system (auditwheel's policies)."""

WINDOWS = frozenset(
    f"{name}.dll"
    for name in (
        *("advapi32", "bcrypt", "bcryptprimitives", "cfgmgr32", "d3d12", "dbghelp", "dxgi", "kernel32", "ntdll"),
        *("ole32", "setupapi", "shell32", "shlwapi", "user32", "version", "wer", "wintrust", "ws2_32"),
        *("vcruntime140", "vcruntime140_1"),  # Python brings these two.
    )
)

MACOS = ("/usr/lib/", "/System/Library/Frameworks/")


@dataclass(frozen=True, slots=True)
class Shipped:
    """A distribution in the wheels of some targets, with the first of their Python versions."""

    name: str
    lock: str
    tags: tuple[str, ...]
    python: str
    system: str

    def __str__(self) -> str:
        return f"{self.name}-{self.tags[0]}"


def list_shipped() -> list[Shipped]:
    """The runtimes, plugins and arrays of all targets of Python, each once for a platform."""
    found: dict[tuple[str, str, str], Shipped] = {}
    for target in target_ids():
        profile = resolve_target(target)
        settings = PythonSettings.of(profile)
        runtime, tags = profile.runtime, settings.wheel_platforms
        versions = {runtime.package: runtime.version, **runtime.plugins, NUMPY.partition(">")[0]: ""}
        for name, version in versions.items() if tags else ():
            lock = name_runtime_lock(runtime)
            one = Shipped(name, lock, tags, settings.versions[0], profile.platform.system)
            found.setdefault((name, version, tags[0]), one)
    return list(found.values())


def read_libraries(wheel: Path) -> Iterator[tuple[str, lief.Binary]]:
    """Those in a wheel for its processor, by their file names; code for a coprocessor of Qualcomm's is none of them."""
    with zipfile.ZipFile(wheel) as archive:
        for path in archive.namelist():
            name = path.rpartition("/")[2]
            if name.endswith((".dll", ".pyd", ".dylib")) or ".so" in name:
                binary = lief.parse(archive.read(path))
                if isinstance(binary, lief.ELF.Binary) and binary.header.machine_type == lief.ELF.ARCH.HEXAGON:
                    continue
                assert isinstance(binary, lief.Binary), path
                yield name, binary


def list_imports(binary: lief.Binary) -> list[str]:
    """What the linker looks for when it loads the library, or at the first call of a delayed import."""
    if isinstance(binary, lief.PE.Binary):
        return [entry.name.lower() for entry in (*binary.imports, *binary.delay_imports)]
    if isinstance(binary, lief.MachO.Binary):
        own = lief.MachO.LoadCommand.TYPE.ID_DYLIB
        return [library.name for library in binary.libraries if library.command != own]
    return [str(name) for name in binary.libraries]


def find_names(name: str, binary: lief.Binary) -> set[str]:
    """Its names for the linker."""
    names = {name.lower() if isinstance(binary, lief.PE.Binary) else name}
    if isinstance(binary, lief.ELF.Binary) and (entry := binary.get(lief.ELF.DynamicEntry.TAG.SONAME)):
        names.add(entry.name)  # type: ignore[attr-defined]
    return names


def is_of_the_system(name: str, system: str) -> bool:
    if system == "windows":
        return name in WINDOWS or name.startswith(("api-ms-win-", "python3"))
    return name.startswith(MACOS) if system == "macos" else name in LINUX


def list_required(shipped: Shipped) -> str:
    """What the providers in this distribution require on this system, under any options, as text. A runtime has the
    libraries of providers that no target uses, too.
    """
    known = [find_provider(name) for name in provider_names()]
    owners = [one for one in known if shipped.name in {row.package for row in one.presence.availability}]
    rules = [rule for one in (find_provider("cpu"), *owners) for rule in one.presence.needs]
    here = [rule for rule in rules if not rule.systems or shipped.system in rule.systems]
    return " ".join(
        text for rule in here for text in (rule.what, rule.check, *rule.libraries.get(shipped.system, ()))
    ).lower()


@pytest.mark.parametrize("shipped", list_shipped(), ids=str)
def test_what_a_library_imports_is_there_or_required(shipped: Shipped, tmp_path: Path) -> None:
    if (shipped.name, shipped.system) in HUGE:
        pytest.skip(f"{shipped} was not examined: its wheel has a quarter of a gigabyte")
    lock = shipped_lock(shipped.lock)
    assert lock is not None
    pins = tuple(pin for pin in lock.pins if pin.name == shipped.name)
    environments = Environments(cache_root(tmp_path))
    (wheel,) = fetch_wheels(Lock(name=shipped.name, pins=pins), shipped.tags, shipped.python, environments)
    libraries = list(read_libraries(wheel.path))
    assert libraries
    carried = {one for name, binary in libraries for one in find_names(name, binary)}
    required = list_required(shipped)
    missing = {
        f"{name}: {wanted}"
        for name, binary in libraries
        for wanted in list_imports(binary)
        if wanted not in carried and not is_of_the_system(wanted, shipped.system) and wanted.lower() not in required
    }
    assert not missing
