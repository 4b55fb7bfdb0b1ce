"""Makes environments atomically, by the digest of their lock, and says why one is rebuilt."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from bundler.environments.installing import Say, install_lock
from bundler.environments.lockfiles import Lock, Pin
from bundler.environments.sealing import find_altered, seal_folder
from bundler.environments.tools import run_uv
from bundler.model.errors import EnvironmentMissingError
from bundler.support.disk import storage_error
from bundler.support.files import name_draft, publish_folder
from bundler.support.remembered import BEHIND, recall, remember

MARKER = "bundler-environment.json"
"""Written last, before the rename: an environment that has it is whole."""

_ABOUT = "environment"


def environment_folder(cache_root: Path, lock: Lock, python_version: str) -> Path:
    """The folder of a lock's environment, made or not."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "-", lock.name)
    return cache_root / "environments" / f"{safe}-py{python_version}-{lock.digest[:16]}"


def find_environment(cache_root: Path, lock: Lock, python_version: str) -> Path:
    """Where the environment of a lock is used: behind the cache, when only a read-only one there has it, whole."""
    own = environment_folder(cache_root, lock, python_version)
    behind = environment_folder(cache_root / BEHIND, lock, python_version)
    return behind if not is_whole(own) and is_whole(behind) else own


def interpreter_in(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def is_whole(folder: Path) -> bool:
    """Whether an environment was finished, and its interpreter is still there."""
    return (folder / MARKER).is_file() and interpreter_in(folder).exists()


def is_intact(folder: Path) -> bool:
    """Whether an environment is whole, and each of its files what was installed."""
    return is_whole(folder) and find_altered(folder) is None


def make_environment(folder: Path, lock: Lock, base: Path, say: Say) -> None:
    """Make the environment in a folder beside, then rename it. `base` is the interpreter that it starts from.

    Raises `EnvironmentMissingError`; then nothing is left behind.
    """
    versions = lock.versions()
    say(f"making environment {lock.name} ({len(versions)} packages): {_reason(folder, lock, versions)}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    passing = name_draft(folder)
    try:
        installed = {pin.name: pin.version for pin in _install(passing, lock, base, say)}
        description = {"name": lock.name, "digest": lock.digest, "versions": versions, "installed": installed}
        remember(passing / MARKER, description, _ABOUT)
        seal_folder(passing)
        publish_folder(passing, folder, is_intact)  # another process may have made it meanwhile, and be using its own
    except OSError as error:
        if not is_whole(folder):
            doing = f"making environment {lock.name}"
            raise storage_error(error, doing, folder) or EnvironmentMissingError(
                f"could not make environment {lock.name} in {folder}: {error.strerror or error}",
                hint="check the free space and the permissions of the cache, or name another with BUNDLER_CACHE",
            ) from error
    finally:
        shutil.rmtree(passing, ignore_errors=True)


def made_environments(cache_root: Path) -> dict[str, dict[str, str]]:
    """Versions by package as they were installed, of every whole environment, by folder name."""
    found = {}
    folders = (cache_root / "environments", cache_root / BEHIND / "environments")
    for marker in sorted(marker for folder in folders for marker in folder.glob(f"[!.]*/{MARKER}")):
        data = _read_marker(marker.parent, "installed")
        if data is not None and is_whole(marker.parent):
            found[marker.parent.name] = data
    return found


def _install(folder: Path, lock: Lock, base: Path, say: Say) -> tuple[Pin, ...]:
    run_uv(
        ("venv", "--quiet", "--no-project", "--python", str(base), str(folder)), f"make an environment for {lock.name}"
    )
    return install_lock(lock, interpreter_in(folder), folder / "requirements.lock", say)


def _reason(folder: Path, lock: Lock, versions: Mapping[str, str]) -> str:
    if is_whole(folder):
        return f"{find_altered(folder)} in the existing environment was modified"
    if folder.exists():
        return "its interpreter is missing" if (folder / MARKER).is_file() else "the existing environment is incomplete"
    prefix = folder.name[: -len(lock.digest[:16])]
    earlier = [path for path in sorted(folder.parent.glob(f"{prefix}*")) if _read_marker(path) is not None]
    if not earlier:
        return "first use"
    return "its lock changed: " + ", ".join(_changes(_read_marker(earlier[-1]) or {}, versions))


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    texts = [
        f"{name} {old.get(name, '(absent)')} -> {new.get(name, '(absent)')}"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]
    return texts or ["the hashes of its files"]


def _read_marker(folder: Path, key: str = "versions") -> dict[str, str] | None:
    try:
        found = recall(folder / MARKER, _ABOUT)
        return dict(found.get(key, found["versions"]))
    except (ValueError, KeyError, TypeError):
        return None
