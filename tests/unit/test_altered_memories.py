"""What stands in the cache may have been altered: no answer is another for it, only found out again."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundler.emitters.python.licences import describe_wheel
from bundler.emitters.python.wheels import Wheel
from bundler.emitters.web.compression import Compressor, compress_brotli
from bundler.execution.cache import Cache, open_cache
from bundler.execution.sources import digest_source
from bundler.model.artifacts import FileRecord
from bundler.model.digests import digest_file

MANY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
OLD = 1_000_000_000


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return open_cache(str(tmp_path / "cache"))


def alter(path: Path, data: st.DataObject) -> None:
    """Another byte somewhere, or the file cut, or another text of the same kind in it."""
    good = path.read_bytes()
    place = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(data.draw(st.sampled_from([bytes(bad), good[:place], b"[]", b"{}", b"null", b"[" * 100_000])))


@MANY
@given(data=st.data())
def test_an_altered_memory_of_a_source_gives_no_other_digest(cache: Cache, tmp_path: Path, data: st.DataObject) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"a model")
    os.utime(model, ns=(OLD, OLD))
    digest_source(model, (), cache)  # its change time is young: remembered from the second time on
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bundler.execution.sources.is_settled", lambda _: True)
        right = digest_source(model, (), cache).digest
        (memory,) = (cache.root / "sources").glob("*.json")
        alter(memory, data)
        assert digest_source(model, (), cache).digest == right


def test_a_memory_of_one_source_is_none_of_another(cache: Cache, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bundler.execution.sources.is_settled", lambda _: True)
        (tmp_path / "a").write_bytes(b"a")
        digest_source(tmp_path / "a", (), cache)
        (memory,) = (cache.root / "sources").glob("*.json")
        kept = memory.read_bytes()
        memory.unlink()
        (tmp_path / "a").rename(tmp_path / "b")  # the identity stays
        right = digest_source(tmp_path / "b", (), cache).digest
        (memory,) = (cache.root / "sources").glob("*.json")
        memory.write_bytes(kept)
        assert digest_source(tmp_path / "b", (), cache).digest == right


@pytest.fixture
def wheel(tmp_path: Path) -> Wheel:
    path = tmp_path / "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("thing-1.0.dist-info/METADATA", "Name: thing\nVersion: 1.0\nLicense-Expression: MIT\n")
        archive.writestr("thing-1.0.dist-info/LICENSE", "do what you like")
    return Wheel(name="thing", version="1.0", path=path, sha256=digest_file(path), size=path.stat().st_size)


@MANY
@given(data=st.data())
def test_an_altered_memory_of_a_wheel_gives_no_other_notice(wheel: Wheel, data: st.DataObject) -> None:
    right = describe_wheel(wheel, "wheels")
    (memory,) = wheel.path.parent.glob("component-*.json")
    alter(memory, data)
    assert describe_wheel(wheel, "wheels") == right
    assert right.licence == "MIT"


@MANY
@given(data=st.data())
def test_an_altered_compressed_file_is_compressed_again(tmp_path: Path, data: st.DataObject) -> None:
    source = tmp_path / "weights.bin"
    source.write_bytes(b"weights " * 100)
    record = FileRecord(path="weights.bin", size=800, sha256=digest_file(source))
    compressor = Compressor(cache_root=tmp_path / "cache")
    forms, sizes = compressor.compress(source, record, 5), compressor.measure(source, record, best=False)
    for kept in (tmp_path / "cache" / "compressed").glob("*/*/*"):
        alter(kept, data)
    assert compressor.compress(source, record, 5) == forms
    assert compressor.measure(source, record, best=False) == sizes
    assert forms[".br"] == compress_brotli(source.read_bytes(), 5)
