import io
import tarfile
from pathlib import Path

import pytest

from bundler.emitters.web.package import open_package
from bundler.model.errors import VerificationError
from tests.support.web_packages import write_package


def pack(folder: Path, place: Path, *more: tarfile.TarInfo) -> Path:
    place.mkdir()
    with tarfile.open(place / "tiny-1.0.0.tgz", "w:gz") as archive:
        archive.add(folder, "package")
        for entry in more:
            archive.addfile(entry, io.BytesIO(b"x" * entry.size))
    return place


def make_entry(name: str, **changes: object) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = 1
    for field, value in changes.items():
        setattr(entry, field, value)
    return entry


def test_a_packed_package_is_unpacked_for_as_long_as_it_is_needed(tmp_path: Path) -> None:
    bundle = pack(write_package(tmp_path / "package", {"wasm": {}}), tmp_path / "bundle")
    with open_package(bundle) as package:
        root = package.root
        assert (root / "index.js").is_file()
        assert [variant.name for variant in package.config.variants] == ["wasm"]
    assert not root.exists()


@pytest.mark.parametrize(
    "entry",
    [
        make_entry("../outside.txt"),
        make_entry("package/link", type=tarfile.SYMTYPE, linkname="../../outside", size=0),
        make_entry("package/pipe", type=tarfile.FIFOTYPE, size=0),
    ],
)
def test_an_archive_that_reaches_outside_is_refused(tmp_path: Path, entry: tarfile.TarInfo) -> None:
    bundle = pack(write_package(tmp_path / "package", {"wasm": {}}), tmp_path / "bundle", entry)
    with pytest.raises(VerificationError, match="is not a whole web bundle"), open_package(bundle):
        pass


@pytest.mark.parametrize("data", [b"", b"no archive", b"\x1f\x8b\x08broken"])
def test_an_archive_that_is_none_is_said(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "tiny.tgz").write_bytes(data)
    with pytest.raises(VerificationError, match="is not a whole web bundle"), open_package(tmp_path):
        pass


def test_two_archives_are_one_too_many(tmp_path: Path) -> None:
    bundle = pack(write_package(tmp_path / "package", {"wasm": {}}), tmp_path / "bundle")
    (bundle / "other.tgz").write_bytes(b"")
    with pytest.raises(VerificationError), open_package(bundle):
        pass
