"""The wheels that a bundle runs on: locked, at hand, and as the lines of the lock that the bundle carries."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bundler.emitters.contract import EmitRequest
from bundler.emitters.python.profile import PythonSettings
from bundler.emitters.python.tags import expand_tags
from bundler.emitters.python.wheels import Wheel, fetch_wheels, find_kept
from bundler.environments.lockfiles import Lock, parse_lock, render_pins
from bundler.environments.registry import Environments, PythonPackages
from bundler.execution.temporary import temporary_folder
from bundler.model.artifacts import record_folder
from bundler.model.errors import DefectError, EnvironmentMissingError, IndexUnreachableError, VerificationError
from bundler.model.manifest import MANIFEST_NAME, load_manifest_data
from bundler.profiles.schema import Runtime

BACKEND_LOCK = "flit-core"
"""The build backend travels with the folder, so that `pip install` needs no index for it either."""

NUMPY = "numpy>=1.26,<3"
"""The loader uses nothing of NumPy that came after 1.26 (its version for Python 3.12) or goes away before 3."""

ANYWHERE = "any"
"""The platform tag of a wheel that installs on every system."""

_TWO_PROCESSORS = "_universal2"

DOWNLOADER = "pip"
"""What fetches wheels for other systems."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheelhouse:
    """All wheels for a target's Python versions, in the order of their file names. `pins` are those of all systems."""

    wheels: tuple[Wheel, ...]
    pins: Lock

    @property
    def lock(self) -> str:
        """The text of the lock that names these wheels and no others."""
        return narrow_lock(self.pins, {wheel.sha256 for wheel in self.wheels})

    def without(self, name: str) -> Wheelhouse:
        """The same without the wheels of a distribution."""
        return replace(self, wheels=tuple(wheel for wheel in self.wheels if wheel.name != name))

    def find(self, name: str) -> Wheel:
        """The wheel of a distribution. Raises `KeyError`."""
        for wheel in self.wheels:
            if wheel.name == name:
                return wheel
        raise KeyError(name)


def fetch_runtime(request: EmitRequest) -> Wheelhouse:
    """The runtime of the target with all that it needs, and the build backend.

    Raises `EnvironmentMissingError` when a wheel is neither cached nor available.
    """
    environments = request.environments
    name = name_runtime_lock(request.profile.runtime)
    packages = PythonPackages(list_requirements(request.profile.runtime))
    runtime = environments.lock_for(name, packages, request.reporter)
    lock = merge_locks(runtime, environments.lock(BACKEND_LOCK))
    settings = PythonSettings.of(request.profile)
    found: dict[str, Wheel] = {}
    for version in settings.versions:
        found.update({wheel.path.name: wheel for wheel in _fetch(request, lock, version)})
    return Wheelhouse(wheels=tuple(found[name] for name in sorted(found)), pins=lock)


def _fetch(request: EmitRequest, lock: Lock, version: str) -> tuple[Wheel, ...]:
    """The wheels for one Python version. Raises `EnvironmentMissingError` that names the profile's keys."""
    settings = PythonSettings.of(request.profile)
    try:
        return fetch_wheels(
            lock,
            settings.wheel_platforms,
            version,
            request.environments,
            reporter=request.reporter,
        )
    except IndexUnreachableError:
        raise  # whether it has the wheels is not known
    except EnvironmentMissingError as error:
        shipped = ", ".join(list_runtime_requirements(request.profile.runtime))
        raise EnvironmentMissingError(
            f"the wheels of {shipped} for Python {version} on {settings.wheel_platforms[0]} are not available",
            hint="if the index has none for this Python or platform, choose another with --python (a profile's"
            " `python.versions`) or another `runtime`; otherwise " + (error.hint or "try again with a network"),
            details=(error.message, *error.details),
        ) from error


def list_requirements(runtime: Runtime) -> tuple[str, ...]:
    """What the bundle's package requires: the runtime with its plugins, and arrays."""
    return (*list_runtime_requirements(runtime), NUMPY)


def list_runtime_requirements(runtime: Runtime) -> tuple[str, ...]:
    """The runtime and the plugins beside it, pinned."""
    plugins = tuple(f"{name}=={version}" for name, version in sorted(runtime.plugins.items()))
    return (f"{runtime.package}=={runtime.version}", *plugins)


def name_runtime_lock(runtime: Runtime) -> str:
    """The lock of a runtime and its plugins with all that they need."""
    return "-".join(("python-runtime", *(item.replace("==", "-") for item in list_runtime_requirements(runtime))))


def find_platform(wheels: Sequence[Wheel], accepted: Sequence[str]) -> str:
    """The platform tag of a wheel that needs all of `wheels`: of those that a target with the tags `accepted` takes,
    the one that asks for least and that each of them installs on. `any` where none of them is for a platform.
    """
    needs = [_platforms_of(wheel) for wheel in wheels]
    if all(ANYWHERE in platforms for platforms in needs):
        return ANYWHERE
    known = tuple(dict.fromkeys((*expand_tags(accepted), *accepted)))  # what takes one takes those after it, too
    for place in reversed(range(len(known))):
        taken = {ANYWHERE, *known[place:]}
        # A target is one processor: a tag for two would claim the other.
        if not known[place].endswith(_TWO_PROCESSORS) and all(taken & platforms for platforms in needs):
            return known[place]
    return accepted[0]  # They were fetched for it.


def _platforms_of(wheel: Wheel) -> set[str]:
    from packaging.utils import parse_wheel_filename  # noqa: PLC0415 (needed when packing alone)

    return {tag.platform for tag in parse_wheel_filename(wheel.path.name)[3]}


def merge_locks(first: Lock, second: Lock) -> Lock:
    """The pins of both."""
    return Lock(name=first.name, pins=(*first.pins, *second.pins))


def narrow_lock(lock: Lock, held: set[str]) -> str:
    """The lock with the digests of `held` wheels alone, sorted by name: what the bundle carries."""
    kept = [replace(pin, hashes=tuple(value for value in pin.hashes if value in held)) for pin in lock.pins]
    return render_pins(sorted((pin for pin in kept if pin.hashes), key=lambda pin: (pin.name, pin.version)))


def read_lock(text: str, name: str) -> Lock:
    """The lock of a bundle. Raises `VerificationError` when it is none."""
    try:
        return parse_lock(name, text)
    except DefectError as error:
        raise VerificationError(error.message, hint="build the bundle again") from error


def check_locked(bundle: Path, wheels: str, lock: Lock) -> None:
    """Raise `VerificationError` unless the folder `wheels` of a bundle holds exactly what `lock` names by digest."""
    wanted = {digest for pin in lock.pins for digest in pin.hashes}
    found = _list_wheels(bundle, wheels)
    strange = sorted(name for name, sha256 in found.items() if sha256 not in wanted)
    missing = len(wanted - set(found.values()))
    if strange or missing:
        raise VerificationError(
            f"the wheels in {bundle / wheels} do not match the lock",
            hint="build the bundle again",
            details=(*(f"not in the lock: {name}" for name in strange), f"{missing} of the lock are missing"),
        )


def _list_wheels(bundle: Path, wheels: str) -> dict[str, str]:
    """Digests by file name: those of the manifest, which the caller has checked or just written, else computed now."""
    if not (bundle / MANIFEST_NAME).is_file():
        return {record.path: record.sha256 for record in record_folder(bundle / wheels).files}
    entries = load_manifest_data(bundle).get("files", [])
    return {
        entry["path"].removeprefix(f"{wheels}/"): entry["sha256"]
        for entry in entries
        if entry["path"].startswith(f"{wheels}/")
    }


@contextmanager
def gather_locked(lock: Lock, python_version: str, tags: Sequence[str], cache_root: Path) -> Iterator[Path]:
    """A passing folder with the wheels of `lock`: those kept in the cache, else fetched for `tags`.

    Raises `EnvironmentMissingError` when one is not available.
    """
    wheels = find_kept(lock, cache_root) or fetch_wheels(lock, tags, python_version, Environments(cache_root))
    with gather_wheels(wheels) as folder:
        yield folder


@contextmanager
def gather_wheels(wheels: Sequence[Wheel]) -> Iterator[Path]:
    """A passing folder with copies of `wheels`, for tools that take a folder."""
    with temporary_folder("wheels") as name:
        for wheel in wheels:
            shutil.copyfile(wheel.path, Path(name) / wheel.path.name)
        yield Path(name)


def list_minor_versions(names: Sequence[str]) -> tuple[str, ...]:
    """Versions that wheels with compiled code for one version of CPython are for (`cp312-cp312` is 3.12)."""
    found = {match[1] for name in names if (match := re.search(r"-cp3(\d+)-cp3\d+-", name))}
    return tuple(f"3.{minor}" for minor in sorted(found, key=int))
