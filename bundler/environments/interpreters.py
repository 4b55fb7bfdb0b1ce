"""Finds Python interpreters on this machine. None is ever downloaded."""

from __future__ import annotations

import functools
import os
import re
import sys
from pathlib import Path

from bundler.environments.tools import run_uv
from bundler.model.errors import EnvironmentMissingError

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
"""Python versions that bundles may be made for."""


@functools.cache
def find_interpreter(version: str) -> Path | None:
    """An interpreter of `version` (like `3.12`), or None: bundler's own, one that uv finds, or one of pyenv's."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sys.executable)
    return _ask_uv(version) or _look_in_pyenv(version)


def _ask_uv(version: str) -> Path | None:
    try:
        found = run_uv(
            ("python", "find", "--no-python-downloads", "--no-project", "--quiet", version), f"find Python {version}"
        )
    except EnvironmentMissingError:
        return None
    return Path(found.strip()) if found.strip() else None


def _look_in_pyenv(version: str) -> Path | None:
    """Pyenv's shims work only for versions that are active, so look at what is installed."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [path for path in root.glob(f"{version}.*/bin/python{version}") if os.access(path, os.X_OK)]
    return max(found, key=_patch_level, default=None)


def _patch_level(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", path.parent.parent.name))
