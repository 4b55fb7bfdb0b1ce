"""Locks: requirement files in which every package has its exact version and the hashes of its files.

They hold for every system and every Python from 3.11 on (environment markers say which line counts where), and name no
index: where the files come from is the user's own configuration.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bundler.environments.tools import run_uv
from bundler.model.digests import digest_json
from bundler.model.errors import DefectError, EnvironmentMissingError
from bundler.model.registered import list_registered

GROUP = "bundler.locks"
"""Entry points of bundler and of other packages: each is a folder of locks, or a function that returns one."""

CPU_BUILD = "+cpu"
"""How the version of a build for CPUs ends: it is on the index of its project alone."""
GENERAL = "general"
"""The extra in the markers of the pins that stand in for builds for CPUs. Nothing asks for it: pip and uv skip them."""

OLDEST_PYTHON = "3.11"
_ONE_INDEX = ("--index-strategy", "first-index")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_SIZE = re.compile(r"#\s*([0-9]+) bytes\s*$")
_ENTRY = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._:-]*)==([^\s;]+)\s*(?:;\s*(.+))?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One line of a lock: a package's version, where it counts, and the SHA-256 of each file that it may come as.

    `size` is that of the largest of these files in bytes, where the lock states it; else 0.
    """

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A whole lock. `name` is for messages; only `pins` decide the digest."""

    name: str
    pins: tuple[Pin, ...]

    @property
    def digest(self) -> str:
        """SHA-256 over the pins. Which of two builds of one version is installed does not count: the lock names both,
        as it names one wheel for each platform.
        """
        fields = ("name", "version", "marker", "hashes")
        return digest_json([{name: getattr(pin, name) for name in fields} for pin in self.pins])

    def select(self, markers: Mapping[str, str] | None = None) -> tuple[Pin, ...]:
        """The pins that count where `markers` hold (names as in PEP 508); on this machine when None."""
        return tuple(pin for pin in self.pins if _counts(pin, markers))

    def select_general(self, markers: Mapping[str, str] | None = None) -> tuple[Pin, ...]:
        """As `select`, with the general build in place of each build for CPUs; empty where the lock lacks it."""
        found = self.select({**(markers or {}), "extra": GENERAL})
        replaced = {pin.name for pin in self.select(markers)} <= {pin.name for pin in found}
        return found if replaced and not any(pin.version.endswith(CPU_BUILD) for pin in found) else ()

    def versions(self, markers: Mapping[str, str] | None = None) -> dict[str, str]:
        """Versions by package name; of a build for CPUs the version that it has in common with the general build."""
        return {pin.name: pin.version.removesuffix(CPU_BUILD) for pin in self.select(markers)}


def render_pins(pins: Sequence[Pin], *, markers: bool = True) -> str:
    """Pins as a requirement file that pip and uv read."""
    lines = []
    for pin in pins:
        condition = f" ; {pin.marker}" if pin.marker and markers else ""
        hashes = "".join(f" \\\n    --hash=sha256:{value}" for value in pin.hashes)
        size = f"  # {pin.size} bytes" if pin.size else ""
        lines.append(f"{pin.name}=={pin.version}{condition}{hashes}{size}")
    return "\n".join(lines) + "\n"


def parse_lock(name: str, text: str) -> Lock:
    """The lock in a requirement file. Raises `DefectError` for a line that is no exact, hashed pin."""
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]
    return Lock(name=name, pins=tuple(_parse_line(name, line) for line in lines))


@functools.cache
def shipped_lock(name: str) -> Lock | None:
    """A lock that came with bundler or with another package, or None; where both have one, bundler's own counts."""
    places = (folder / f"{name}.lock" for folder in _lock_folders())
    path = next((place for place in places if place.name == f"{name}.lock" and place.is_file()), None)
    return None if path is None else parse_lock(name, path.read_text(encoding="utf-8"))


def shipped_names() -> tuple[str, ...]:
    """Names of the locks that came with bundler and with other packages."""
    return tuple(sorted({path.stem for folder in _lock_folders() for path in folder.glob("*.lock")}))


@functools.cache
def _lock_folders() -> tuple[Path, ...]:
    return tuple(_load_folder(point.name, point.load()) for point in list_registered(GROUP))


def _load_folder(name: str, found: object) -> Path:
    folder = found() if callable(found) else found
    if not isinstance(folder, Path) or not folder.is_dir():
        raise EnvironmentMissingError(
            f"the entry point {GROUP}:{name} does not return a folder of locks",
            details=(f"it gave {folder!r}",),
            hint="report this to the author of that package",
        )
    return folder


def resolve_lock(name: str, requirements: Sequence[str], scratch: Path, beside: Sequence[Pin] = ()) -> Lock:
    """Resolve `requirements` now, for every system. `scratch` is an empty folder; a package that `beside` pins has the
    version that it has there. Raises `EnvironmentMissingError`.

    Nothing says yet which files are meant, so a package is taken from the first index that has it: in a mixture of
    indexes, a higher version that anyone puts under its name into one of them would be used.
    """
    wanted, found, given = scratch / "wanted.txt", scratch / "found.lock", scratch / "given.txt"
    wanted.write_text("\n".join(requirements) + "\n", encoding="utf-8")
    given.write_text(render_pins(beside), encoding="utf-8")
    arguments = ("pip", "compile", "--universal", "--python-version", OLDEST_PYTHON, "--only-binary", ":all:")
    held = ("--constraint", str(given)) if beside else ()
    style = ("--generate-hashes", "--no-header", "--no-annotate", "--quiet", "--output-file", str(found), *held)
    run_uv((*arguments, *_ONE_INDEX, *style, str(wanted)), f"resolve the packages of environment {name}")
    return parse_lock(name, found.read_text(encoding="utf-8"))


def _parse_line(name: str, line: str) -> Pin:
    hashes = tuple(sorted(_HASH.findall(line)))
    entry = _ENTRY.match(line.partition("--hash")[0].strip())
    if entry is None or not hashes:
        raise DefectError(f"the lock {name} has a line that is not an exact, hashed pin: {line.strip()[:80]!r}")
    size = _SIZE.search(line)
    return Pin(
        name=entry[1],
        version=entry[2],
        marker=(entry[3] or "").strip(),
        hashes=hashes,
        size=int(size[1]) if size else 0,
    )


def _counts(pin: Pin, markers: Mapping[str, str] | None) -> bool:
    if not pin.marker:
        return True
    from packaging.markers import Marker  # noqa: PLC0415 - the host's own environment needs none

    return Marker(pin.marker).evaluate(markers)
