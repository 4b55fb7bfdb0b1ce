"""The wheels that a Python bundle vendors: fetched for any system and Python, not installed, kept by digest.

uv installs, but keeps no wheel files, so pip (in a locked environment of ours) fetches them; both obey the user's own
index configuration. What was fetched once is found again without a network.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bundler.emitters.python.tags import expand_tags, target_markers
from bundler.environments.lockfiles import Lock, Pin, render_pins
from bundler.environments.making import interpreter_in
from bundler.environments.registry import Environments
from bundler.environments.tools import run_tool, run_uv
from bundler.environments.variables import proof_environment
from bundler.execution.temporary import temporary_folder
from bundler.model.digests import digest_file, digest_json
from bundler.model.errors import EnvironmentMissingError
from bundler.model.events import SILENT, Reporter
from bundler.support.processes import run_process
from bundler.support.remembered import kept_at, mark_used, recall, remember

WHEELS = "packages/wheels"
"""Where wheels are kept below the cache root."""

WHEELS_ALONE = ("--only-binary", ":all:")
"""Options of uv and pip that refuse source distributions, because building one runs its code."""


BY_HARD_LINK = ("--link-mode", "hardlink")
"""Options of uv for environments whose files no other environment has: what it unpacked for them goes. Where the file
system has no such links, uv copies. An environment that is made from the user's own cache of uv has copies instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One wheel in the cache. `path` ends in its proper file name; `size` is in bytes."""

    name: str
    version: str
    path: Path
    sha256: str
    size: int


def fetch_wheels(
    lock: Lock,
    platform_tags: Sequence[str],
    python_version: str,
    environments: Environments,
    *,
    reporter: Reporter = SILENT,
) -> tuple[Wheel, ...]:
    """The wheels of `lock` for a system that accepts `platform_tags` (and older ones) and a Python like `3.12`.

    In the order of their names. Raises `EnvironmentMissingError` when some are neither cached nor available.
    """
    cache_root = environments.root
    place = cache_root / WHEELS / "sets" / f"{digest_json([lock.digest, list(platform_tags), python_version])}.json"
    kept = _recall(kept_at(cache_root, WHEELS, "sets", place.name), cache_root)
    if kept is not None:
        return kept
    pins = lock.select(target_markers(platform_tags, python_version))
    where = f"Python {python_version} on {platform_tags[0]}"
    reporter.say(f"fetching {len(pins)} wheels for {where}")
    wheels = _download(pins, platform_tags, python_version, environments, f"fetch the wheels for {where}")
    _remember(place, wheels)
    return wheels


def find_kept(lock: Lock, cache_root: Path) -> tuple[Wheel, ...] | None:
    """Every wheel that `lock` names by digest, when all of them are kept here and whole; else None."""
    found = []
    for pin in lock.pins:
        for sha256 in pin.hashes:
            path = next(iter(kept_at(cache_root, WHEELS, sha256[:2], sha256).glob("*.whl")), None)
            if path is None or digest_file(path) != sha256:
                return None
            found.append(Wheel(name=pin.name, version=pin.version, path=path, sha256=sha256, size=path.stat().st_size))
    return tuple(found)


def fresh_environment(python: Path, wheels: Path, requirements: Sequence[str], where: Path) -> Path:
    """A new environment in `where` with `requirements`, from the folder `wheels` alone, with no index and no network.

    Nothing of the wheels is run, and nothing is built: they are untrusted. Returns the environment's interpreter.
    Raises `EnvironmentMissingError`.
    """
    run_uv(("venv", "--quiet", "--no-project", "--python", str(python), str(where)), f"make an environment in {where}")
    interpreter = interpreter_in(where)
    source = (*WHEELS_ALONE, "--no-index", "--offline", "--no-config", "--find-links", str(wheels))
    with unpacked_beside(where) as memory:
        run_uv(
            ("pip", "install", "--quiet", *source, *memory, "--python", str(interpreter), *requirements),
            f"install {', '.join(Path(item).name for item in requirements)} from {wheels} alone",
        )
    _compile(python, where)
    return interpreter


@contextlib.contextmanager
def unpacked_beside(where: Path) -> Iterator[tuple[str, ...]]:
    """Options of uv: it unpacks wheels into a folder beside `where`, links from there, and the folder goes.
    Symbolic links, which the user's `UV_LINK_MODE` may ask for, would then lead nowhere.

    uv's own cache takes what comes from each folder for something else, and keeps it: every set of wheels would stay
    there, unpacked once more.
    """
    with tempfile.TemporaryDirectory(prefix=".", dir=where.parent, ignore_cleanup_errors=True) as memory:
        yield "--cache-dir", memory, *BY_HARD_LINK


def _compile(python: Path, environment: Path) -> None:
    """Write the byte code of an environment now: who starts it may have no right, or no wish, to write any into it.

    By `python`, which it was made from, without its packages: the environment's own interpreter runs what wheels put
    into their `.pth` files as soon as it starts. A file that does not compile has no byte code.
    """
    rules = ("-I", "-S", "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "timestamp")
    folder = environment / ("Lib" if os.name == "nt" else "lib")
    run_process((str(python), *rules, str(folder)), env=proof_environment())


def _download(
    pins: Sequence[Pin], tags: Sequence[str], python_version: str, environments: Environments, doing: str
) -> tuple[Wheel, ...]:
    cache_root = environments.root
    pip = environments.resolve("pip", ("pip",)).python
    root = cache_root / WHEELS
    root.mkdir(parents=True, exist_ok=True)
    with temporary_folder("wheels", otherwise=root) as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text(render_pins(pins, markers=False), encoding="utf-8")
        target = [item for tag in expand_tags(tags) for item in ("--platform", tag)]
        target += ["--python-version", python_version, "--implementation", "cp"]
        rules = ("--no-deps", "--require-hashes", *WHEELS_ALONE, "--quiet", "--dest", folder)
        command = [str(pip), "-m", "pip", "download", *rules, *target, "-r", str(requirements)]
        run_tool(command, doing, "pip")
        return tuple(_keep(pin, Path(folder), cache_root) for pin in sorted(pins, key=lambda pin: pin.name))


def _keep(pin: Pin, folder: Path, cache_root: Path) -> Wheel:
    """Move a downloaded wheel to its place by digest."""
    found = [path for path in folder.glob("*.whl") if _is_of(path, pin)]
    if len(found) != 1:
        raise EnvironmentMissingError(f"pip fetched {len(found)} wheels of {pin.name} {pin.version}, not one")
    sha256 = digest_file(found[0])
    if sha256 not in pin.hashes:
        raise EnvironmentMissingError(f"the wheel {found[0].name} is not in the lock")
    place = cache_root / WHEELS / sha256[:2] / sha256 / found[0].name
    place.parent.mkdir(parents=True, exist_ok=True)
    size = found[0].stat().st_size
    if not place.exists() or digest_file(place) != sha256:  # else the sets that name it keep their file
        found[0].replace(place)
    return Wheel(name=pin.name, version=pin.version, path=place, sha256=sha256, size=size)


def _is_of(path: Path, pin: Pin) -> bool:
    from packaging.utils import canonicalize_name, parse_wheel_filename  # noqa: PLC0415 - only after a download

    name, version, *_ = parse_wheel_filename(path.name)
    return name == canonicalize_name(pin.name) and str(version) == pin.version


def _remember(place: Path, wheels: Sequence[Wheel]) -> None:
    """Which wheels were found; their identities let a later build trust them without reading them."""
    items = [
        {
            "name": wheel.name,
            "version": wheel.version,
            "file": wheel.path.name,
            "sha256": wheel.sha256,
            "identity": _identify(wheel.path),
        }
        for wheel in wheels
    ]
    remember(place, items, _about(place))


def _recall(place: Path, cache_root: Path) -> tuple[Wheel, ...] | None:
    items = recall(place, _about(place))
    try:
        wheels = tuple(_recall_wheel(item, cache_root) for item in items)
        identities = [list(_identify(wheel.path)) for wheel in wheels]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if identities != [item["identity"] for item in items]:
        if any(digest_file(wheel.path) != wheel.sha256 for wheel in wheels):
            return None
        with contextlib.suppress(OSError):
            _remember(cache_root / WHEELS / "sets" / place.name, wheels)
    for path in (place, *(wheel.path.parent for wheel in wheels)):
        mark_used(path)
    return wheels


def _recall_wheel(item: dict[str, str], cache_root: Path) -> Wheel:
    path = kept_at(cache_root, WHEELS, item["sha256"][:2], item["sha256"], Path(item["file"]).name)
    size = path.stat().st_size
    return Wheel(name=item["name"], version=item["version"], path=path, sha256=item["sha256"], size=size)


def _about(place: Path) -> str:
    return f"wheels {place.stem}"


def _identify(path: Path) -> tuple[int, int, int, int]:
    status = path.stat()
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
