"""The environment that exports from PyTorch; a test that needs it is skipped where PyTorch's CPU build is not."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from bundler.model.errors import EnvironmentMissingError
from bundler.pipeline.workspace import Workspace, open_workspace


def resolve_pytorch(workspace: Workspace) -> Path:
    """The interpreter of the environment that exports; skips the test where no index has PyTorch's build for CPUs."""
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
        if not any("no version of torch" in line for line in error.details):
            raise
        return "PyTorch's build for CPUs (torch of the optimum lock) is on no package index of this machine"
    return ""
