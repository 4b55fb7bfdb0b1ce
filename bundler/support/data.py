"""Locates the data files that ship with bundler: in a wheel, an editable installation or a source tree."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from bundler.model.errors import EnvironmentMissingError

PACKAGE = Path(__file__).parents[1]


def data_root(kind: Literal["targets", "templates"]) -> Path:
    """The folder of `kind`: in the package of a wheel, or beside the package in a source tree.

    Raises `EnvironmentMissingError` when there is none.
    """
    for folder in (PACKAGE / "_data" / kind, PACKAGE.parent / kind):
        if folder.is_dir():
            return folder
    raise EnvironmentMissingError(
        f"bundler's own {kind} folder is missing from {PACKAGE}",
        hint="the installation is damaged; install bundler again",
    )


def targets_folder() -> Path:
    """The folder of the built-in targets, for the entry point group `bundler.targets`."""
    return data_root("targets")
