"""Files in parts."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.emitters.web.parts import count_parts, place_asset
from bundler.model.artifacts import FileRecord

MB = 1_000_000


@pytest.mark.parametrize(
    ("size", "part_mb", "count"),
    [(0, 25, 1), (25 * MB, 25, 1), (25 * MB + 1, 25, 2), (26_781_914, 25, 2), (100 * MB, 25, 4), (3, 0.000001, 3)],
)
def test_as_few_parts_as_can_be(size: int, part_mb: float, count: int) -> None:
    assert count_parts(size, part_mb) == count


@given(st.binary(max_size=200), st.integers(1, 60))
def test_parts_are_the_file_again(tmp_path_factory: pytest.TempPathFactory, data: bytes, limit: int) -> None:
    folder = tmp_path_factory.mktemp("parts")
    source = folder / "source"
    source.write_bytes(data)
    record = FileRecord(path="models/a.bin", size=len(data), sha256=hashlib.sha256(data).hexdigest())
    asset = place_asset(source, folder / "bundle", record, limit / MB)
    stored = [(folder / "bundle" / part.path).read_bytes() for part in asset.parts]
    assert b"".join(stored) == data
    assert all(len(part) <= limit for part in stored)
    assert [(len(part), hashlib.sha256(part).hexdigest()) for part in stored] == [
        (part.size, part.sha256) for part in asset.parts
    ]


def test_a_module_is_stored_as_text_for_nobody_to_rewrite(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"export {};")
    digest = hashlib.sha256(b"export {};").hexdigest()
    record = FileRecord(path="vendor/ort.mjs", size=10, sha256=digest)
    asset = place_asset(tmp_path / "source", tmp_path / "bundle", record, 25)
    assert asset.path == "vendor/ort.mjs"
    assert asset.parts == (FileRecord(path="vendor/ort.mjs.txt", size=10, sha256=digest),)
    assert (tmp_path / "bundle" / "vendor" / "ort.mjs.txt").read_bytes() == b"export {};"


def test_a_file_that_fits_is_stored_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"abc")
    record = FileRecord(path="a.bin", size=3, sha256=hashlib.sha256(b"abc").hexdigest())
    assert place_asset(tmp_path / "source", tmp_path / "bundle", record, 25).parts == (record,)
