"""An archive of a bundle holds files alone, each once, and exactly those that the manifest lists."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.model.confinement import refuse_path
from bundler.verification.archives import list_entries
from bundler.verification.integrity import check_integrity

pytestmark = pytest.mark.filterwarnings("ignore:Duplicate name")


def write_zip(path: Path, *names: str, mode: int = stat.S_IFREG | 0o644) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            archive.writestr(entry, b"x")
    return path


def write_tar(path: Path, *names: str, kind: bytes = tarfile.REGTYPE) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, "package.json", 1 if kind == tarfile.REGTYPE else 0
            archive.addfile(entry, io.BytesIO(b"x"))
    return path


def test_files_are_listed_with_their_sizes(tmp_path: Path) -> None:
    assert list_entries(write_zip(tmp_path / "a.jar", "a/", "a/B.class", "c")) == {"a/B.class": 1, "c": 1}
    assert list_entries(write_tar(tmp_path / "a.tgz", "package/a.js")) == {"package/a.js": 1}


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("a", "a"), "present twice"),
        (("../../a",), "leaves its folder"),
        (("../",), "leaves its folder"),
        (("/etc/passwd",), "absolute"),
        (("c:/a",), "absolute"),
        (("a\\b",), "a backslash"),
    ],
)
def test_a_name_that_is_not_one_file_of_the_archive_is_refused(
    tmp_path: Path, names: tuple[str, ...], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        list_entries(write_zip(tmp_path / "a.jar", *names))
    if not names[0].endswith("/"):
        with pytest.raises(ValueError, match=says):
            list_entries(write_tar(tmp_path / "a.tgz", *names))


def test_a_link_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a regular file"):
        list_entries(write_zip(tmp_path / "a.jar", "a", mode=stat.S_IFLNK | 0o777))
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
        with pytest.raises(ValueError, match="not a regular file"):
            list_entries(write_tar(tmp_path / "a.tgz", "a", kind=kind))


@given(content=st.binary(max_size=300))
def test_any_bytes_are_an_archive_or_are_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "a.jar"
    path.write_bytes(write_zip(path, "a").read_bytes()[:40] + content)
    for name in (path, path.rename(path.with_suffix(".tgz"))):
        try:
            assert all(refuse_path(entry) is None for entry in list_entries(name))
        except (ValueError, FileNotFoundError):
            continue


def seal(bundle: Path, archives: object) -> None:
    """Write a manifest with digests that are right."""
    files = [
        {"path": path.name, "size": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path in sorted(bundle.glob("*.jar"))
    ]
    (bundle / "bundle.json").write_text(json.dumps({"schema": 4, "files": files, "archives": archives}), "utf-8")


def test_a_sealed_archive_holds_what_the_manifest_lists(tmp_path: Path) -> None:
    write_zip(tmp_path / "a.jar", "b", "c")
    seal(tmp_path, {"a.jar": {"b": 1, "c": 1}})
    assert check_integrity(tmp_path).sound
    seal(tmp_path, {})  # an older bundle lists none
    assert check_integrity(tmp_path).sound
    seal(tmp_path, {"a.jar": {"b": 2, "d": 1}})
    assert check_integrity(tmp_path).faults == (
        "archive: a.jar (entry 'c' is not in the manifest)",
        "archive: a.jar (entry 'd' is missing)",
        "archive: a.jar (entry 'b' has 1 bytes instead of 2)",
    )


def test_an_entry_that_is_there_twice_is_a_fault_whoever_sealed_it(tmp_path: Path) -> None:
    write_zip(tmp_path / "a.jar", "b", "b")
    seal(tmp_path, {"a.jar": {"b": 1}})
    assert check_integrity(tmp_path).faults == ("archive: a.jar (entry 'b': present twice)",)
