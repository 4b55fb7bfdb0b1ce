"""The environment that exports from PyTorch; a test that needs it is skipped where no package index has PyTorch."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from bundler.environments.lockfiles import shipped_lock
from bundler.model.errors import EnvironmentMissingError
from bundler.pipeline.workspace import Workspace, open_workspace


def resolve_pytorch(workspace: Workspace) -> Path:
    """The interpreter of the environment that exports; skips the test where no index has PyTorch."""
    missing = _describe_missing_build(workspace.cache.root)
    if missing:
        pytest.skip(missing)
    return workspace.environments.resolve("optimum").python


@cache
def _describe_missing_build(root: Path) -> str:
    """Empty where the environment was made. Asked once a process: without a network it takes a quarter of a minute."""
    try:
        with open_workspace(str(root)) as workspace:
            workspace.environments.resolve("optimum")
    except EnvironmentMissingError as error:
        absent = ("torch was not found", f"no version of torch=={_general_version()} ")
        if not any(words in f"{line} " for line in error.details for words in absent):
            raise
        return "neither build of PyTorch (torch of the optimum lock) is on a package index of this machine"
    return ""


def _general_version() -> str:
    lock = shipped_lock("optimum")
    assert lock is not None
    return lock.versions()["torch"]
