"""Emitted packages of a tiny network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bundler.emitters.contract import EmitRequest
from bundler.model.runtime import Preparation
from tests.integration.python.packages import Package, imported, write_package
from tests.support import models
from tests.support.bundles import make_request, make_variant, model_artifact, with_variants


@pytest.fixture(autouse=True)
def no_byte_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))


@pytest.fixture(scope="session")
def cnn_request(tmp_path_factory: pytest.TempPathFactory) -> EmitRequest:
    return make_request(models.cnn(), tmp_path_factory.mktemp("cnn"), name="tiny cnn")


@pytest.fixture
def package(cnn_request: EmitRequest, tmp_path: Path) -> Package:
    """A fresh copy that a test may spoil."""
    return write_package(cnn_request, tmp_path)


@pytest.fixture
def module(package: Package) -> Iterator[ModuleType]:
    with imported(package) as found:
        yield found


@pytest.fixture
def bundle_of(tmp_path: Path) -> Callable[..., Package]:
    """Writes the package of any model."""

    def write(model: object, **changes: object) -> Package:
        return write_package(make_request(model, tmp_path / "made", **changes), tmp_path)  # type: ignore[arg-type]

    (tmp_path / "made").mkdir()
    return write


@pytest.fixture
def prepared(cnn_request: EmitRequest, tmp_path: Path) -> Iterator[ModuleType]:
    """A package that has every module of the loader: something is generated on the device for it."""
    prepare = Preparation(kind="context", thing="context")
    variant = make_variant("cpu", model_artifact(cnn_request), prepare=prepare, device_cache=True)
    with imported(write_package(with_variants(cnn_request, variant), tmp_path)) as found:
        yield found
