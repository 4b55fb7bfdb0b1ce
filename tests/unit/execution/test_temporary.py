"""Folders that are needed for a while: where they stand, and that a socket fits into a short one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bundler.execution.scratch import Scratch
from bundler.execution.temporary import offer_scratch, temporary_folder

SOCKET = "org.chromium.Chromium.XXXXXX/SingletonSocket"


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder with a path of a few characters; pytest's own is too long for these tests."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.skipif(os.name != "posix", reason="sockets with paths are those of Unix")
@pytest.mark.parametrize("name", ["cache", "home-of-alice", "home-of-somebody-else", "é" * 20, "long" * 40])
def test_a_socket_fits_into_a_short_folder_wherever_the_cache_is(root: Path, name: str) -> None:
    with Scratch(root / name) as scratch, offer_scratch(lambda: scratch):
        with temporary_folder("socket", short=True) as folder:
            assert len(os.fsencode(Path(folder) / SOCKET)) < 108
        with temporary_folder("browser") as folder:
            assert Path(folder).parent == scratch.folder


@pytest.mark.skipif(os.name != "posix", reason="sockets with paths are those of Unix")
def test_a_long_folder_for_temporary_files_is_passed_by(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / ("long" * 40)).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(root / ("long" * 40)))
    with temporary_folder("socket", short=True) as folder:
        assert len(os.fsencode(Path(folder) / SOCKET)) < 108
