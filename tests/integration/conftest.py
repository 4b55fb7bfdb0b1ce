"""One cache for the whole session, shared by all of its processes: wheels are fetched once, and the product's own
locking has to stand many builds at once.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bundler.execution.cache import open_cache
from tests.support.command_line import ONE_PYTHON, CommandLine


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this session see."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "shared"
    folder.mkdir(exist_ok=True)
    open_cache(str(folder / "cache")).close()  # tests that fill it without the program come first, now and then
    return folder


@pytest.fixture(scope="session")
def bundler(shared: Path) -> CommandLine:
    """The program with the cache of the session."""
    return CommandLine(cache=shared / "cache")


@pytest.fixture
def cold(tmp_path: Path) -> CommandLine:
    """The program with an empty cache of its own."""
    return CommandLine(cache=tmp_path / "cold-cache")


@pytest.fixture(scope="session")
def here() -> tuple[str, ...]:
    """Options of a build that need run only on this machine."""
    return ("--target", "linux-x64", "--set", ONE_PYTHON)
