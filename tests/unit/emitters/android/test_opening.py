"""An archive for Android that anybody could have written: what is no plain archive of ours is refused."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from bundler.emitters.android.opening import open_module
from bundler.model.errors import VerificationError

CONFIG = "assets/com.acme.detect/payload/runtime.json"


def make_jar(*names: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as jar:
        for name in names:
            jar.writestr(name, b"class")
    return stream.getvalue()


JAR = make_jar("com/acme/Model.class")
WHOLE = {"classes.jar": JAR, CONFIG: b"{}"}


def write(
    bundle: Path, entries: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED, pom: bytes = b"<project/>"
) -> Path:
    place = bundle / "repository/com/acme/detect/1"
    place.mkdir(parents=True)
    (place / "detect-1.pom").write_bytes(pom)
    with zipfile.ZipFile(place / "detect-1.aar", "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return place / "detect-1.aar"


def refuse(bundle: Path) -> str:
    with pytest.raises(VerificationError, match="is not a complete module for Android") as caught, open_module(bundle):
        pytest.fail("it was opened")
    return "\n".join(caught.value.details)


def test_a_whole_one_has_its_payload_and_its_classes(tmp_path: Path) -> None:
    write(tmp_path, {**WHOLE, "R.txt": b""})
    with open_module(tmp_path) as opened:
        assert (opened.payload / "runtime.json").read_bytes() == b"{}"
        assert opened.loader.read_bytes() == JAR
        assert not (opened.loader.parent / "R.txt").exists()
        folder = opened.loader.parent
    assert not folder.exists()


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({CONFIG: b"{}"}, "it has no classes.jar"),
        ({"classes.jar": JAR}, ""),
        ({**WHOLE, "assets/com.acme.other/payload/runtime.json": b"{}"}, ""),
        ({**WHOLE, "assets/../../../out": b"x"}, "is not a plain name"),
        ({**WHOLE, "assets//x": b"x"}, "is not a plain name"),
        ({**WHOLE, "assets/c:x": b"x"}, "is not a plain name"),
        ({**WHOLE, f"{CONFIG}/below": b"x"}, "Error"),
        ({**WHOLE, "assets/empty/": b""}, "is not a plain name"),
    ],
)
def test_what_is_no_module_is_refused(tmp_path: Path, entries: Mapping[str, bytes], says: str) -> None:
    write(tmp_path / "bundle", entries)
    assert says in refuse(tmp_path / "bundle")
    assert {path.name for path in tmp_path.iterdir()} == {"bundle"}


def test_compressed_entries_are_refused_before_they_fill_the_disk(tmp_path: Path) -> None:
    write(tmp_path, {**WHOLE, "assets/large": bytes(1 << 20)}, zipfile.ZIP_DEFLATED)
    assert "larger than the archive" in refuse(tmp_path)


def test_small_ones_that_are_compressed_are_refused_too(tmp_path: Path) -> None:
    write(tmp_path, WHOLE, zipfile.ZIP_DEFLATED)
    assert "is compressed" in refuse(tmp_path)


def test_a_name_twice_is_refused(tmp_path: Path) -> None:
    archive = write(tmp_path, WHOLE)
    with zipfile.ZipFile(archive, "a") as opened, pytest.warns(UserWarning, match="Duplicate name"):
        opened.writestr("classes.jar", b"other")
    assert "FileExistsError" in refuse(tmp_path)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, {}).write_bytes(content)
    refuse(tmp_path)


def test_two_archives_are_refused(tmp_path: Path) -> None:
    archive = write(tmp_path, WHOLE)
    archive.with_name("other.aar").write_bytes(archive.read_bytes())
    refuse(tmp_path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_class_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {**WHOLE, "classes.jar": make_jar("com/acme/Model.class", "com/acme/Model.class")})
    assert "present twice" in refuse(tmp_path)


@pytest.mark.parametrize(
    ("pom", "says"),
    [
        (b'<!DOCTYPE project [<!ENTITY x SYSTEM "file:///etc/passwd">]><project>&x;</project>', "DOCTYPE"),
        (b"<project>", "the POM is not XML"),
    ],
)
def test_a_pom_with_entities_is_refused(tmp_path: Path, pom: bytes, says: str) -> None:
    write(tmp_path, WHOLE, pom=pom)
    assert says in refuse(tmp_path)
