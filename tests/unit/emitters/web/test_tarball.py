"""The package as one file: what npm takes, with equal bytes for equal content."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from bundler.emitters.contract import EmitRequest
from bundler.emitters.web import tarball
from bundler.emitters.web.emitter import EMITTER
from bundler.emitters.web.tarball import pack_folder


@pytest.fixture(scope="module")
def packed(request_: EmitRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    emitted = EMITTER.emit(dataclasses.replace(request_, format="tgz"), folder)
    assert (emitted.payload, emitted.package) == (None, "tiny-cnn")
    assert emitted.dependencies[0].file is None
    assert emitted.downloads
    return folder


def test_one_file_and_how_to_use_it(packed: Path) -> None:
    assert sorted(path.name for path in packed.iterdir()) == ["README.md", "tiny-cnn-1.2.3.tgz"]
    assert "npm install --install-links ./tiny-cnn-1.2.3.tgz" in (packed / "README.md").read_text()


def test_it_holds_what_the_folder_does(packed: Path, bundle: Path) -> None:
    with tarfile.open(packed / "tiny-cnn-1.2.3.tgz") as archive:
        members = archive.getmembers()
        names = {member.name.removeprefix("package/") for member in members}
        read = archive.extractfile("package/vendor/ort-wasm-simd-threaded.wasm")
        assert read is not None
        assert read.read() == (bundle / "vendor" / "ort-wasm-simd-threaded.wasm").read_bytes()
    assert names == {path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()}
    assert all(member.isreg() and member.mode == 0o644 and member.uid == member.gid == 0 for member in members)
    assert [member.name for member in members] == sorted(member.name for member in members)


def test_equal_content_gives_equal_bytes(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack_folder(bundle, tmp_path / "first.tgz")
    copy = shutil.copytree(bundle, tmp_path / "copy")
    for path in copy.rglob("*"):
        os.utime(path, (0, 0))
        if path.is_file():
            path.chmod(0o755)
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    pack_folder(copy, tmp_path / "second.tgz")
    assert (tmp_path / "first.tgz").read_bytes() == (tmp_path / "second.tgz").read_bytes()


def test_large_packages_are_packed_piece_by_piece(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tarball, "_MEMBER", 10_000)
    pack_folder(bundle, tmp_path / "pieces.tgz")
    with tarfile.open(tmp_path / "pieces.tgz") as archive:
        archive.extractall(tmp_path, filter="data")
    for path in bundle.rglob("*"):
        if path.is_file():
            assert (tmp_path / "package" / path.relative_to(bundle)).read_bytes() == path.read_bytes()


def test_npm_installs_it(packed: Path, tmp_path: Path, node: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not here")
    (tmp_path / "package.json").write_text('{"name": "app", "private": true, "type": "module"}')
    rules = ("--offline", "--no-audit", "--no-fund", "--ignore-scripts", "--cache", str(tmp_path / "cache"))
    command = [npm, "install", *rules, str(packed / "tiny-cnn-1.2.3.tgz")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    code = 'import * as model from "tiny-cnn"; console.log(JSON.stringify(Object.keys(model).sort()))'
    done = subprocess.run(
        [node, "--input-type=module", "-e", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert {"load", "probe", "clearCache", "BundleError", "IntegrityError"} <= set(json.loads(done.stdout))
