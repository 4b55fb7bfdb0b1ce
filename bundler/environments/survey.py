"""The survey of `bundler doctor`: tools and environments on this machine, and how to get missing ones."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from bundler.environments.interpreters import SUPPORTED, find_interpreter
from bundler.environments.lockfiles import shipped_names
from bundler.environments.making import made_environments
from bundler.environments.registry import host_version
from bundler.environments.tools import find_uv, run_uv
from bundler.model.errors import EnvironmentMissingError

HOST_PACKAGES = ("onnx", "onnxruntime", "numpy")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStatus:
    """One tool or environment. `detail` is where it is or what it is for; `hint` how to get it when it is missing.
    `required` tools must be there for a build of any target.
    """

    name: str
    found: bool
    version: str | None
    detail: str
    hint: str | None
    required: bool = False


def survey(cache_root: Path) -> tuple[ToolStatus, ...]:
    """Look at everything. Starts `uv` and nothing else, changes nothing, needs no network."""
    return (
        *(_look_at_package(name) for name in HOST_PACKAGES),
        _look_at_uv(),
        *(_look_at_python(version) for version in SUPPORTED),
        *(_look_at_environment(name, versions) for name, versions in made_environments(cache_root).items()),
    )


def _look_at_package(name: str) -> ToolStatus:
    version = host_version(name)
    return ToolStatus(
        name=name,
        found=version is not None,
        version=version,
        detail=f"in the environment of bundler ({sys.prefix})",
        hint=None if version else "reinstall bundler: it depends on this package",
        required=True,
    )


def _look_at_uv() -> ToolStatus:
    detail = f"makes tool environments; locks that ship with bundler: {', '.join(shipped_names())}"
    try:
        version = run_uv(("--version",), "ask uv for its version").split()[1]
    except (EnvironmentMissingError, IndexError) as error:
        hint = getattr(error, "hint", None) or "install it with `python -m pip install uv`"
        return ToolStatus(name="uv", found=False, version=None, detail=detail, hint=hint, required=True)
    return ToolStatus(name="uv", found=True, version=version, detail=f"{find_uv()}: {detail}", hint=None, required=True)


def _look_at_python(version: str) -> ToolStatus:
    path = find_interpreter(version)
    own = path is not None and path == Path(sys.executable)
    return ToolStatus(
        name=f"Python {version}",
        found=path is not None,
        version=platform.python_version() if own else (version if path else None),
        detail=str(path) if path else "bundles for it can be built, but not verified on this machine",
        hint=None if path else f"install it with your system's packages, or with `uv python install {version}`",
    )


def _look_at_environment(name: str, versions: dict[str, str]) -> ToolStatus:
    return ToolStatus(
        name=f"environment {name}", found=True, version=None, detail=f"{len(versions)} packages", hint=None
    )
