"""A browser of this machine, and real bundles of a tiny network for browsers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import models
from tests.support.browser import provide_browser
from tests.support.command_line import CommandLine


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
def unproven(bundler: CommandLine, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished bundle for WebGPU and WebAssembly that was not run yet. Tests that spoil it take a copy."""
    output = tmp_path_factory.mktemp("web")
    built = bundler.build(tiny_model, "--target", "web-webgpu", "--no-prove", "--output", output)
    return Path(built["bundle"])


@pytest.fixture(scope="session")
def packed(bundler: CommandLine, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for WebAssembly alone, as npm packs it."""
    output = tmp_path_factory.mktemp("packed")
    built = bundler.build(tiny_model, "--target", "web-wasm", "--format", "tgz", "--no-prove", "--output", output)
    return Path(built["bundle"])
