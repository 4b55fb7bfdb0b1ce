"""Jars: repeatable, and mapped in place."""

from __future__ import annotations

import zipfile
from pathlib import Path

from bundler.emitters.jvm.archives import ALIGNMENT, repack_jar, write_jar


def data_offset(jar: Path, name: str) -> int:
    """Where the data of an entry begin, by its local header."""
    with zipfile.ZipFile(jar) as archive:
        start = archive.getinfo(name).header_offset
    header = jar.read_bytes()[start : start + 30]
    return start + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")


def test_models_lie_uncompressed_at_the_beginning_of_a_page(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(b"model" * 1000)
    jar = tmp_path / "x.jar"
    write_jar(
        jar,
        {"META-INF/MANIFEST.MF": b"x\n", "a/model": tmp_path / "model", "a/ä": b"text", "b": b"plain"},
        aligned=lambda name: name.startswith("a/"),
    )
    assert data_offset(jar, "a/model") % ALIGNMENT == 0
    assert data_offset(jar, "a/ä") % ALIGNMENT == 0
    start = data_offset(jar, "a/model")
    assert jar.read_bytes()[start : start + 5000] == b"model" * 1000
    with zipfile.ZipFile(jar) as archive:
        assert archive.testzip() is None
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.namelist()[0] == "META-INF/MANIFEST.MF"


def test_equal_content_is_equal_bytes(tmp_path: Path) -> None:
    files = {"a": b"1", "b/c": b"2" * 70_000}
    for name in ("one", "other"):
        write_jar(tmp_path / name, files, aligned=bool)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_jar_with_only_what_is_needed(tmp_path: Path) -> None:
    source, target = tmp_path / "source.jar", tmp_path / "target.jar"
    with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("a")
        archive.writestr("a/keep", b"1" * 1000)
        archive.writestr("a/drop", b"2")
    repack_jar(source, target, lambda name: name.endswith("keep"))
    with zipfile.ZipFile(target) as archive:
        assert archive.namelist() == ["a/keep"]
        assert archive.read("a/keep") == b"1" * 1000
