"""Packages of npm: fetched by npm itself with the user's own configuration, kept by digest, never installed.

No script of a package is run, and of its files only those that are asked for are unpacked. What was fetched once is
found again without a network.
"""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bundler.emitters.web.nodejs import find_npm
from bundler.emitters.web.npm_store import (
    KEPT,
    PackageFile,
    find_tarball,
    keep_tarball,
    package_place,
    recall_file,
    unpack_files,
)
from bundler.environments.lockfiles import Lock, Pin
from bundler.environments.registry import Environments
from bundler.environments.tools import run_tool
from bundler.execution.temporary import temporary_folder
from bundler.model.codec import parse_json
from bundler.model.digests import digest_file
from bundler.model.errors import DefectError, EnvironmentMissingError
from bundler.model.events import SILENT, Reporter
from bundler.support.disk import storage_error
from bundler.support.remembered import BEHIND, mark_used

_PACKAGE = re.compile(r"[a-z0-9][a-z0-9._-]*@[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*")
_RULES = ("--ignore-scripts", "--no-update-notifier", "--no-progress", "--json", "--loglevel", "silent")
_SETTINGS = ("NPM_CONFIG_*", "npm_config_*", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS")
"""Variables by which a user configures npm."""

_PATIENCE = ("--fetch-retry-mintimeout", "1000", "--fetch-retry-factor", "2")
"""npm tries three times; by default it reports a missing network after more than a minute."""


def name_lock(package: str, version: str) -> str:
    """The name of the lock of one package."""
    return f"npm-{package}-{version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NpmPackage:
    """One package of npm, as the source of a lock."""

    name: str
    version: str

    def resolve(self, name: str, environments: Environments, reporter: Reporter = SILENT) -> Lock:
        """The lock `name` of what npm gives now; the package is kept, too. Raises `EnvironmentMissingError`."""
        if _PACKAGE.fullmatch(f"{self.name}@{self.version}") is None:
            raise DefectError(f"the lock {name} is not of one package of npm: {self.name[:80]!r}")
        pin = Pin(name=self.name, version=self.version, marker="", hashes=())
        with _download(pin, environments, reporter) as tarball:
            sha256 = digest_file(tarball)
            keep_tarball(tarball, package_place(environments.root, sha256))
        return Lock(name=name, pins=(replace(pin, hashes=(sha256,)),))


def fetch_files(
    lock: Lock, wanted: Sequence[str], environments: Environments, reporter: Reporter = SILENT
) -> tuple[PackageFile, ...]:
    """The files `wanted` (paths inside the package) of the one package in `lock`, in that order.

    Raises `EnvironmentMissingError` when the package is neither cached nor available, is not the locked one, or
    lacks a file.
    """
    pin = lock.pins[0]
    place, behind = (package_place(root, pin.hashes[0]) for root in (environments.root, environments.root / BEHIND))
    found = [recall_file(place, path) or recall_file(behind, path) for path in wanted]
    if not all(found):
        tarball = _ensure_tarball(pin, place, environments, reporter)
        _unpack(tarball, wanted, place / "files")
        found = [recall_file(place, path) or recall_file(behind, path) for path in wanted]
    mark_used(place)
    missing = [path for path, file in zip(wanted, found, strict=True) if file is None]
    if missing:
        raise EnvironmentMissingError(
            f"{pin.name} {pin.version} has no {missing[0]}",
            details=tuple(missing),
            hint="use a version that bundler ships a lock for: the files of this one are laid out differently",
        )
    return tuple(file for file in found if file is not None)


def _unpack(tarball: Path, wanted: Sequence[str], folder: Path) -> None:
    try:
        unpack_files(tarball, wanted, folder)
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise storage_error(error, f"unpacking {tarball.name}", folder) or EnvironmentMissingError(
            f"could not unpack {tarball.name} in {folder}: {error}",
            hint="check the free space and the permissions of the cache, or name another with BUNDLER_CACHE",
        ) from error


def _ensure_tarball(pin: Pin, place: Path, environments: Environments, reporter: Reporter) -> Path:
    behind = package_place(environments.root / BEHIND, pin.hashes[0])
    kept = find_tarball(place, pin.hashes[0]) or find_tarball(behind, pin.hashes[0])
    if kept is not None:
        return kept
    reporter.say(f"fetching {pin.name} {pin.version}")
    with _download(pin, environments, reporter) as tarball:
        sha256 = digest_file(tarball)
        if sha256 not in pin.hashes:
            raise EnvironmentMissingError(
                f"the package {pin.name} {pin.version} that npm fetched is not the one in the lock",
                details=(f"locked sha256:{pin.hashes[0]}", f"fetched sha256:{sha256}"),
                hint="find out who altered it: a published version never changes",
            )
        return keep_tarball(tarball, place)


@contextmanager
def _download(pin: Pin, environments: Environments, reporter: Reporter) -> Iterator[Path]:
    """The package's file in a passing folder."""
    npm = find_npm(environments, reporter)
    root = environments.root / KEPT
    root.mkdir(parents=True, exist_ok=True)
    with temporary_folder("npm", otherwise=root) as folder:
        _run((*npm, "pack", f"{pin.name}@{pin.version}", *_RULES, *_PATIENCE, "--pack-destination", folder), pin)
        found = sorted(Path(folder).glob("*.tgz"))
        if len(found) != 1:
            raise EnvironmentMissingError(f"npm fetched {len(found)} files for {pin.name} {pin.version}, not one")
        yield found[0]


def _run(command: Sequence[str], pin: Pin) -> None:
    try:
        run_tool(command, f"fetch {pin.name} {pin.version}", "npm", variables=_SETTINGS)
    except EnvironmentMissingError as error:
        raise type(error)(error.message, hint=error.hint, details=_tidy(error.details)) from error


def _tidy(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The summary and the detail of an error that npm reports as JSON; other lines unchanged."""
    try:
        error = parse_json("\n".join(lines))["error"]
        return tuple(line for part in (error["summary"], error["detail"]) for line in part.splitlines() if line)
    except (ValueError, KeyError, TypeError, AttributeError):
        return lines
