"""One cache for the whole session, shared by all of its processes: wheels are fetched once, and the product's own
locking has to stand many builds at once.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Playwright, sync_playwright

from bundler.execution.cache import open_cache
from bundler.execution.locks import hold
from tests.support import models
from tests.support.command_line import ONE_PYTHON, CommandLine
from tests.support.in_process import Warm

Unproven = Callable[..., Path]


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


@pytest.fixture(scope="session")
def unproven_of(shared: Path, bundler: CommandLine, here: tuple[str, ...]) -> Unproven:
    """`unproven_of(target, format, *names)` is a finished bundle of a small network for images that was not run, with a
    component for each name. Whichever process asks first builds it; tests that spoil it take a copy.
    """

    @functools.cache
    def build(target: str, form: str, *names: str) -> Path:
        folder = shared / "unproven" / f"{target}-{form}"
        folder.mkdir(parents=True, exist_ok=True)
        with hold(folder / "lock"):
            model = models.save(models.cnn(), folder)
            what = (*(f"{name}={model}" for name in names), "--bundle", "pair") if names else (model,)
            place = here if target in here else ("--target", target)
            options = ("--format", form, "--no-prove", "--output", folder / "out")
            return Path(bundler.build(*what, *place, *options)["bundle"])

    return build


@pytest.fixture(scope="session")
def warm(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The same inside this process, with workers that stay: for what is refused, or done at once."""
    program = Warm(cache=shared / "cache", room=tmp_path_factory.mktemp("workers"))
    yield program
    program.close()


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """One for all tests of a process, which can hold no second."""
    with sync_playwright() as running:
        yield running


@pytest.fixture
def cold(tmp_path: Path) -> CommandLine:
    """The program with an empty cache of its own."""
    return CommandLine(cache=tmp_path / "cold-cache")


@pytest.fixture(scope="session")
def here() -> tuple[str, ...]:
    """Options of a build that need run only on this machine."""
    return ("--target", "linux-x64", "--set", ONE_PYTHON)
