"""With the real onnxruntime-web, from npm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bundler.emitters.web import compression
from bundler.emitters.web.compression import compress_brotli, compress_gzip
from bundler.emitters.web.npm import fetch_files, name_lock
from bundler.emitters.web.npm_store import PackageFile
from bundler.emitters.web.parts import place_asset
from bundler.emitters.web.profile import WebSettings
from bundler.emitters.web.vendor import list_builds
from bundler.environments.registry import Environments
from bundler.model.artifacts import FileRecord
from tests.support.bundles import cache_root
from tests.support.web_bundles import RUNTIME

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[PackageFile, ...]:
    environments = Environments(cache_root(tmp_path_factory.mktemp("cache")))
    names = [f"dist/{name}" for build in list_builds().values() for name in (build.module, build.binary)]
    return fetch_files(environments.lock(name_lock("onnxruntime-web", RUNTIME)), names, environments)


def test_every_build_is_in_the_package(files: tuple[PackageFile, ...]) -> None:
    for file in files:
        start = file.source.read_bytes()[:200]
        assert start.startswith(b"\0asm") if file.path.endswith(".wasm") else b"ONNX Runtime Web v1.30.0" in start


def test_the_known_sizes_are_those_of_the_files(files: tuple[PackageFile, ...], tmp_path: Path) -> None:
    known = json.loads(Path(compression.__file__).with_name("runtime_sizes.json").read_text())
    for file in files:
        record = FileRecord(path=Path(file.path).name, size=file.size, sha256=file.sha256)
        for part in place_asset(file.source, tmp_path, record, WebSettings().part_mb).parts:
            data = (tmp_path / part.path).read_bytes()
            assert known[part.sha256]["gzip"] == len(compress_gzip(data))
            if part.size < 1_000_000:
                assert known[part.sha256]["brotli"] == len(compress_brotli(data, 11))
