"""Tool environments by name: `host`, `onnxruntime==X.Y.Z`, or a lock that ships with bundler."""

from __future__ import annotations

import functools
import re
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Protocol

from bundler.environments.lockfiles import Lock, parse_lock, render_pins, resolve_lock, shipped_lock, shipped_names
from bundler.environments.making import (
    environment_folder,
    find_environment,
    interpreter_in,
    is_intact,
    is_whole,
    make_environment,
)
from bundler.model.errors import DefectError, EnvironmentMissingError
from bundler.model.events import SILENT, Reporter
from bundler.model.plan import HOST
from bundler.support.remembered import keep, kept_at, mark_used, read_bounded, seal_bytes, unseal_bytes

RUNTIME = "onnxruntime"
PYTHON_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
_TRUSTED = (
    "resolving the packages of {name}, for which bundler has no lock: it trusts the index this time, and requires the "
    "same digests from then on (`bundler lock` keeps them with a project)"
)
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where a stage runs. `versions` are those of the packages that were asked for (of all its packages, when it was
    made by us); `digest` is that of its lock, empty for the host; `python_version` is like `3.11`.
    """

    name: str
    python: Path
    versions: Mapping[str, str]
    digest: str
    python_version: str

    @property
    def is_host(self) -> bool:
        """Whether it is the interpreter that bundler itself runs in."""
        return self.name == HOST


class LockSource(Protocol):
    """Where a lock comes from for which none ships with bundler, and none is pinned. Equal sources are equal values."""

    def resolve(self, name: str, environments: Environments, reporter: Reporter) -> Lock:
        """The lock `name` of what is given now. Raises `EnvironmentMissingError`."""
        ...


@dataclass(frozen=True, slots=True)
class PythonPackages:
    """Distributions of the user's package index, as requirements."""

    requirements: tuple[str, ...]

    def resolve(self, name: str, environments: Environments, reporter: Reporter) -> Lock:
        """The lock of what the index gives now, for every system. Raises `EnvironmentMissingError`."""
        del reporter
        place = environments.root / "locked"
        with tempfile.TemporaryDirectory(prefix=".new-", dir=place, ignore_cleanup_errors=True) as scratch:
            return resolve_lock(name, self.requirements, Path(scratch))


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagesBeside:
    """The lock `base`, which comes from `source`, and distributions of the user's package index beside it: what it pins
    keeps its version.
    """

    base: str
    source: LockSource | None
    requirements: tuple[str, ...]

    def resolve(self, name: str, environments: Environments, reporter: Reporter) -> Lock:
        """The lock of what the index gives now, for every system. Raises `EnvironmentMissingError`."""
        held = environments.lock_for(self.base, self.source, reporter).pins
        place = environments.root / "locked"
        with tempfile.TemporaryDirectory(prefix=".new-", dir=place, ignore_cleanup_errors=True) as scratch:
            found = resolve_lock(name, self.requirements, Path(scratch), held)
        names = {pin.name for pin in held}
        return Lock(name=name, pins=(*held, *(pin for pin in found.pins if pin.name not in names)))


class Environments:
    """Resolves names, making environments below the cache root when they are first needed.

    `pinned` are texts of locks by environment name that count before all others (from a project's lock file).
    """

    def __init__(self, cache_root: Path, pinned: Mapping[str, str] | None = None) -> None:
        self._root = cache_root
        self._pinned = dict(pinned or {})
        self._locks: dict[str, Lock] = {}
        self._intact: set[Path] = set()
        self._altered: set[Path] = set()
        self._guard = threading.RLock()

    @property
    def root(self) -> Path:
        """The cache that environments and wheels are kept in."""
        return self._root

    def describe(self, name: str, packages: Sequence[str] = (), reporter: Reporter = SILENT) -> Environment:
        """The environment as `resolve` would give it, without making it: its interpreter may not be there yet.

        Raises `EnvironmentMissingError` when its lock is not here and cannot be resolved.
        """
        if self.is_host(name):
            return host_environment(tuple(packages))
        lock = self.lock(name, reporter)
        return Environment(
            name=name,
            python=interpreter_in(self._find(lock)),
            versions=lock.versions(),
            digest=lock.digest,
            python_version=PYTHON_VERSION,
        )

    def resolve(self, name: str, packages: Sequence[str] = (), reporter: Reporter = SILENT) -> Environment:
        """The environment, ready to use. Raises `EnvironmentMissingError` when it is not here and cannot be made."""
        environment = self.describe(name, packages, reporter)
        if environment.is_host:
            return environment
        folder = self._ensure(self.lock(name, reporter), reporter)
        return replace(environment, python=interpreter_in(folder))

    def lock(self, name: str, reporter: Reporter = SILENT) -> Lock:
        """The lock of an environment other than the host: pinned, shipped, kept from before, or resolved now."""
        package, _, version = name.partition("==")
        if package == RUNTIME and _VERSION.fullmatch(version):
            return self.lock_for(name, runtime_packages(version), reporter)
        return self.lock_for(name, None, reporter)

    def lock_for(self, name: str, source: LockSource | None, reporter: Reporter = SILENT) -> Lock:
        """As `lock`; `source` is asked where there is none yet (None: there must be one).

        Raises `EnvironmentMissingError`.
        """
        with self._guard:
            if name not in self._locks:
                self._locks[name] = self._find_lock(name, source, reporter)
            return self._locks[name]

    def is_host(self, name: str) -> bool:
        """Whether `name` means the interpreter that bundler runs in."""
        return name == HOST or self._is_host_runtime(name)

    def forget_kept_locks(self) -> None:
        """Resolve anew what was resolved before and kept; what ships with bundler stays."""
        for path in (self._root / "locked").glob("*.lock"):
            path.unlink(missing_ok=True)

    def _is_host_runtime(self, name: str) -> bool:
        package, _, version = name.partition("==")
        return package == RUNTIME and version == host_version(RUNTIME)

    def _find(self, lock: Lock) -> Path:
        """Where the environment of a lock is used. One behind a passing cache that was altered is made anew in that."""
        found = find_environment(self._root, lock, PYTHON_VERSION)
        return environment_folder(self._root, lock, PYTHON_VERSION) if found in self._altered else found

    def _ensure(self, lock: Lock, reporter: Reporter) -> Path:
        with self._guard:
            folder = self._find(lock)
            if folder in self._intact and is_whole(folder):
                return folder
            if not is_intact(folder):
                self._altered.add(folder)
                folder = environment_folder(self._root, lock, PYTHON_VERSION)
                make_environment(folder, lock, Path(sys.executable), reporter.say)
            self._intact.add(folder)
        mark_used(folder)
        return folder

    def _find_lock(self, name: str, source: LockSource | None, reporter: Reporter) -> Lock:
        if name in self._pinned:
            return parse_lock(name, self._pinned[name])
        plain = name.replace("==", "-")
        found = shipped_lock(plain) if re.fullmatch(r"[A-Za-z0-9._+!-]+", plain) else None
        if found is not None:
            return found
        if source is None:
            raise EnvironmentMissingError(
                f"no environment is named {name!r}",
                hint=f"known are host, {RUNTIME}==VERSION, {', '.join(shipped_names())}",
            )
        return self._kept_lock(name, source, reporter)

    def _kept_lock(self, name: str, source: LockSource, reporter: Reporter) -> Lock:
        """The lock of what bundler ships no lock for: resolved once, then kept in the cache."""
        place = self._root / "locked" / f"{name.replace('==', '-')}.lock"
        kept = _recall_lock(kept_at(self._root, "locked", place.name), name)
        if kept is not None:
            return kept
        reporter.alert(_TRUSTED.format(name=name))
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = source.resolve(name, self, reporter)
        keep(place, seal_bytes(render_pins(lock.pins).encode(), f"lock {name}"))
        return lock


def _recall_lock(place: Path, name: str) -> Lock | None:
    try:
        text = unseal_bytes(read_bounded(place), f"lock {name}")
        return parse_lock(name, text.decode("utf-8")) if text else None
    except (OSError, ValueError, DefectError):
        return None


def runtime_packages(version: str) -> PythonPackages:
    """What an environment with another runtime needs besides it: the model format, as the host has it, and arrays."""
    onnx = host_version("onnx")
    return PythonPackages((f"{RUNTIME}=={version}", f"onnx=={onnx}" if onnx else "onnx", "numpy"))


@functools.cache
def host_environment(packages: tuple[str, ...]) -> Environment:
    """The interpreter that bundler is installed in, with the versions of `packages` (those that are installed)."""
    return Environment(
        name=HOST,
        python=Path(sys.executable),
        versions={name: found for name in packages if (found := host_version(name))},
        digest="",
        python_version=PYTHON_VERSION,
    )


@functools.cache
def host_version(package: str) -> str | None:
    """The version of a distribution beside bundler, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
