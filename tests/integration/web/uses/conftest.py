"""One browser and one bundle of each kind for all pages of a session, built by the real command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Playwright

from tests.support import models
from tests.support.command_line import CommandLine
from tests.support.javascript import install
from tests.support.web_host import Host, host
from tests.support.web_pages import SOFTWARE_WEBGPU, Visitor, launch, visitor


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """A browser with WebGPU on the software adapter, as far as it has one."""
    running = launch(playwright, *SOFTWARE_WEBGPU)
    yield running
    running.close()


@pytest.fixture(scope="session")
def bare_browser(playwright: Playwright) -> Iterator[Browser]:
    """A browser without WebGPU."""
    running = launch(playwright, "--disable-gpu", "--disable-features=WebGPU")
    yield running
    running.close()


@pytest.fixture(scope="session")
def wasm_bundle(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle for the CPU whose runtime and model are stored in several parts."""
    folder = tmp_path_factory.mktemp("wasm")
    model = models.save(models.mlp(hidden=60_000), folder, "wide.onnx")
    return build(bundler, model, "web-wasm", "--set", "web.part_mb=2")


@pytest.fixture(scope="session")
def webgpu_bundle(unproven: Path) -> Path:
    """A bundle of an image model for WebGPU and the CPU."""
    return unproven


@pytest.fixture(scope="session")
def bundler_cache(bundler: CommandLine) -> Path:
    """Where the command line of this session keeps what it fetched."""
    return bundler.cache


def build(bundler: CommandLine, model: Path, target: str, *options: str) -> Path:
    """`bundler build` without a proof, which other tests are for."""
    built = bundler.build(model, "--target", target, "--no-prove", "--output", model.parent / "out", *options)
    return Path(built["bundle"])


@pytest.fixture(scope="session")
def app(packed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package in its `node_modules`."""
    folder = tmp_path_factory.mktemp("app")
    (folder / "package.json").write_text(json.dumps({"name": "app", "private": True, "type": "module"}), "utf-8")
    (tarball,) = packed.glob("*.tgz")
    install(tarball, folder)
    return folder


@pytest.fixture
def wasm_host(wasm_bundle: Path) -> Iterator[Host]:
    with host(wasm_bundle) as site:
        yield site


@pytest.fixture
def guest(browser: Browser) -> Iterator[Visitor]:
    """A visitor who comes for the first time."""
    with visitor(browser) as found:
        yield found
