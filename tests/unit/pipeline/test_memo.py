import os
from pathlib import Path

import pytest

from bundler.pipeline.memo import recall_bundle, remember_bundle


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "bundle"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "model.onnx").write_bytes(b"weights")
    remember_bundle(tmp_path / "cache", folder, "key", {"proof": "executed"})
    return folder


def test_an_unchanged_bundle_is_recalled(bundle: Path, tmp_path: Path) -> None:
    assert recall_bundle(tmp_path / "cache", bundle, "key") == {"proof": "executed"}


def test_another_key_is_another_bundle(bundle: Path, tmp_path: Path) -> None:
    assert recall_bundle(tmp_path / "cache", bundle, "other") is None


def test_an_altered_byte_is_noticed_though_size_and_time_are_forged(bundle: Path, tmp_path: Path) -> None:
    path = bundle / "inner" / "model.onnx"
    before = path.stat()
    path.write_bytes(b"w3ights")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert recall_bundle(tmp_path / "cache", bundle, "key") is None


@pytest.mark.parametrize("change", ["added", "removed"])
def test_files_that_come_or_go_are_noticed(bundle: Path, tmp_path: Path, change: str) -> None:
    if change == "added":
        (bundle / "extra").touch()
    else:
        (bundle / "inner" / "model.onnx").unlink()
    assert recall_bundle(tmp_path / "cache", bundle, "key") is None


def test_a_damaged_memo_is_no_memo(bundle: Path, tmp_path: Path) -> None:
    for memo in (tmp_path / "cache" / "bundles").iterdir():
        memo.write_text("{")
    assert recall_bundle(tmp_path / "cache", bundle, "key") is None
