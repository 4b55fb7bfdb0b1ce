"""Finds a package inside an environment without starting its interpreter."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from bundler.environments.registry import Environment
from bundler.model.errors import EnvironmentMissingError


def find_package(environment: Environment, package: str) -> Path:
    """The folder of an importable package. Raises `EnvironmentMissingError` when the environment has none."""
    for folder in _site_folders(environment):
        if (folder / package).is_dir():
            return folder / package
    raise EnvironmentMissingError(
        f"the environment {environment.name} has no package {package}",
        details=(str(environment.python),),
        hint="clear the cache and build again",
    )


def _site_folders(environment: Environment) -> list[Path]:
    if environment.is_host:
        return [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]
    root = environment.python.parent.parent
    return [
        root / "lib" / f"python{environment.python_version}" / "site-packages",
        root / "Lib" / "site-packages",
    ]
