from pathlib import Path

import pytest

from bundler.model.manifest import Manifest
from bundler.reporting.manifest import ManifestRequest
from tests.unit.reporting.builds import make_manifest_of, make_request


@pytest.fixture
def request_of_build() -> ManifestRequest:
    return make_request()


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return tmp_path / "orientation-linux-x64"


@pytest.fixture
def manifest(bundle: Path, request_of_build: ManifestRequest) -> Manifest:
    return make_manifest_of(bundle, request_of_build)
