"""Python interpreters on this machine, and fresh environments made of nothing but a bundle's wheels."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bundler.emitters.writing import write_text
from bundler.model.digests import digest_json
from bundler.model.errors import EnvironmentMissingError, VerificationError

INSTALL_LIMIT = 600.0
"""Seconds that an installation from local files may take."""


def find_uv() -> str:
    """The `uv` that bundler depends on. Raises `EnvironmentMissingError`."""
    beside = Path(sys.executable).with_name("uv.exe" if os.name == "nt" else "uv")
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if found is None:
        raise EnvironmentMissingError("uv is not here", hint="install it: python -m pip install uv")
    return found


def find_python(versions: Sequence[str], cache_root: Path) -> tuple[str, Path] | None:
    """The newest of `versions` that is installed here, with its interpreter; None when there is none.

    Looking takes longer than a proof, so what was found is remembered for as long as it stands there unchanged.
    """
    memory = cache_root / "proofs" / f"python-{digest_json([list(versions), os.environ.get('PATH', '')])[:32]}.json"
    found = _recall(memory)
    if found is None:
        found = _search(versions)
        if found is not None:
            write_text(memory, json.dumps([found[0], str(found[1]), _stamp(found[1])]))
    return found


def _recall(memory: Path) -> tuple[str, Path] | None:
    try:
        version, path, stamp = json.loads(memory.read_text("utf-8"))
        return (version, Path(path)) if _stamp(Path(path)) == stamp else None
    except (OSError, ValueError, TypeError):
        return None


def _search(versions: Sequence[str]) -> tuple[str, Path] | None:
    own = ".".join(platform.python_version_tuple()[:2])
    for version in sorted(versions, key=lambda text: int(text.split(".")[1]), reverse=True):
        path = Path(sys.executable) if version == own else _find_installed(version)
        if path is not None:
            return version, path
    return None


def _find_installed(version: str) -> Path | None:
    command = [find_uv(), "python", "find", "--quiet", "--no-python-downloads", "--no-project", "--system", version]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return Path(done.stdout.strip()) if done.returncode == 0 and done.stdout.strip() else None


def prepare_environment(python: Path, wheels: Path, lock: str, cache_root: Path) -> Path:
    """The interpreter of an environment that holds exactly what `lock` names, installed from `wheels` with no index.

    It never changes once it is there, so it is kept by the digest of the lock and the interpreter: only the first
    proof of a set of wheels pays. Raises `VerificationError` when the wheels do not install.
    """
    home = cache_root / "proofs" / digest_json([lock, str(python), _stamp(python)])[:32]
    if not (home / "complete").is_file():
        _make_environment(python, wheels, lock, home)
    return _interpreter(home)


def _make_environment(python: Path, wheels: Path, lock: str, home: Path) -> None:
    """Make it aside, mark it, rename it: another build may be doing the same."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".draft-", ignore_cleanup_errors=True) as name:
        draft = Path(name) / "environment"
        _run([find_uv(), "venv", "--quiet", "--relocatable", "--python", str(python), str(draft)])
        requirements = Path(name) / "requirements.lock"
        requirements.write_text(lock, "utf-8")
        _run(install_command(_interpreter(draft), wheels, "--require-hashes", "-r", str(requirements)))
        (draft / "complete").touch()
        try:
            draft.rename(home)
        except OSError:
            if not (home / "complete").is_file():
                raise


def install_command(python: Path, wheels: Path, *what: str) -> list[str]:
    """`uv pip install` that sees one folder and no index."""
    options = ["--quiet", "--no-config", "--offline", "--no-index", "--find-links", str(wheels)]
    return [find_uv(), "pip", "install", *options, "--python", str(python), *what]


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=INSTALL_LIMIT, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise VerificationError(
            "the bundle does not install from its own wheels",
            details=tuple(done.stderr.strip().splitlines()[-12:]),
            hint="build it again",
        )


def _interpreter(home: Path) -> Path:
    return home / "Scripts" / "python.exe" if os.name == "nt" else home / "bin" / "python"


def _stamp(python: Path) -> list[int]:
    """Changes when the interpreter is replaced by another."""
    stat = python.resolve().stat()
    return [stat.st_size, stat.st_mtime_ns]
