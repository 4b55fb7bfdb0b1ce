"""Real models, fetched once a session, and bundles of them, built once a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bundler.execution.locks import hold
from tests.support.command_line import CommandLine
from tests.support.real_models import fetch_example

BuildOnce = Callable[..., Path]


@pytest.fixture(scope="session")
def build_once(shared: Path, bundler: CommandLine, here: tuple[str, ...]) -> BuildOnce:
    """`build_once(model, *options)` is the bundle's folder; whichever process asks first builds it."""

    def build(model: Path, *options: str) -> Path:
        output = shared / "bundles"
        output.mkdir(exist_ok=True)
        with hold(output / f"{model.stem}.lock"):
            return Path(bundler.build(model, *here, "--output", output, *options)["bundle"])

    return build


@pytest.fixture(scope="session")
def content_type_model(shared: Path) -> Path:
    return fetch_example("content_type", shared / "content_type" / "magika.onnx")


@pytest.fixture(scope="session")
def orientation_model(shared: Path) -> Path:
    return fetch_example("text_orientation", shared / "text_orientation" / "orientation.onnx")
