"""A browser of this machine, and real bundles of a tiny network for browsers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.conftest import Unproven
from tests.support import models
from tests.support.browser import provide_browser


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The machine's browser, installed where it may be; else the test is skipped and says what is missing."""
    found = provide_browser()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network for images."""
    return models.save(models.cnn(), tmp_path_factory.mktemp("tiny-model"))


@pytest.fixture(scope="session")
def unproven(unproven_of: Unproven) -> Path:
    """A finished bundle for WebGPU and WebAssembly that was not run yet. Tests that spoil it take a copy."""
    return unproven_of("web-webgpu", "dir")


@pytest.fixture(scope="session")
def packed(unproven_of: Unproven) -> Path:
    """The same for WebAssembly alone, as npm packs it."""
    return unproven_of("web-wasm", "tgz")
