"""Native libraries in archives of anybody: what suits the target is told apart from what does not, without a crash."""

from __future__ import annotations

import io
import platform
import struct
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundler.emitters.android.native_libraries import PAGE, check_libraries, read_library
from bundler.model.errors import VerificationError

MACHINES = {"arm64-v8a": 183, "x86_64": 62, "armeabi-v7a": 40}


def make_library(abi: str = "arm64-v8a", alignments: tuple[int, ...] = (PAGE, 4 * PAGE), kind: int = 1) -> bytes:
    """The headers of a library, and nothing after them."""
    wide = abi != "armeabi-v7a"
    identity = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9)
    count, form = len(alignments), "<HHIQQQIHHHHHH" if wide else "<HHIIIIIHHHHHH"
    size = 16 + struct.calcsize(form)
    length = 56 if wide else 32
    header = struct.pack(form, 3, MACHINES[abi], 1, 0, size, 0, 0, size, length, count, 0, 0, 0)
    rows = (struct.pack("<IIQQQQQQ" if wide else "<IIIIIIII", kind, *(0,) * 6, value) for value in alignments)
    return identity + header + b"".join(rows)


def write(folder: Path, entries: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(folder / "some.aar", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return folder / "some.aar"


def refuse(archive: Path, abi: str = "arm64-v8a") -> str:
    with pytest.raises(VerificationError, match="do not suit the target") as caught:
        check_libraries(archive, abi)
    return "\n".join(caught.value.details)


@pytest.mark.parametrize("abi", MACHINES)
def test_those_of_the_target_are_told_with_their_sizes(tmp_path: Path, abi: str) -> None:
    library = make_library(abi)
    archive = write(tmp_path, {f"jni/{abi}/b.so": library, f"lib/{abi}/a.so": library, "classes.jar": b""})
    found = check_libraries(archive, abi)
    assert [(item.name, item.size) for item in found] == [
        (f"jni/{abi}/b.so", len(library)),
        (f"lib/{abi}/a.so", len(library)),
    ]
    assert {item.alignment for item in found} == {PAGE}


def test_32_bits_need_no_large_pages(tmp_path: Path) -> None:
    archive = write(tmp_path, {"jni/armeabi-v7a/a.so": make_library("armeabi-v7a", (4096,))})
    assert check_libraries(archive, "armeabi-v7a")[0].alignment == 4096


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("jni/arm64-v8a/a.so", make_library("x86_64"), "for another processor (machine 62, 64 bits)"),
        ("jni/x86_64/a.so", make_library(), "it is not for arm64-v8a"),
        ("jni/a.so", make_library(), "it is not for arm64-v8a"),
        ("jni/arm64-v8a/x/a.so", make_library(), "it is not for arm64-v8a"),
        ("jni/arm64-v8a/a.so", make_library(alignments=(PAGE, 4096)), "aligned to 4096 bytes"),
        ("jni/arm64-v8a/a.so", make_library(alignments=(0,)), "aligned to 0 bytes"),
        ("jni/arm64-v8a/a.so", make_library(alignments=(3 * PAGE,)), "is not a power of two"),
        ("jni/arm64-v8a/a.so", make_library(kind=2), "it has no segment to load"),
        ("jni/arm64-v8a/a.so", make_library(alignments=()), "it has no segment to load"),
        ("jni/arm64-v8a/a.so", make_library()[:-1], "its program headers are missing"),
        ("jni/arm64-v8a/a.so", b"", "it is not a native library"),
        ("jni/arm64-v8a/a.so", b"MZ" + bytes(80), "it is not a native library"),
    ],
)
def test_what_does_not_suit_is_told(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    assert says in refuse(write(tmp_path, {name: content}))


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    told = refuse(write(tmp_path, {"jni/arm64-v8a/a.so": b"", "jni/x86_64/b.so": b""}))
    assert told.splitlines() == [
        "jni/arm64-v8a/a.so: it is not a native library",
        "jni/x86_64/b.so: it is not for arm64-v8a",
    ]


def test_no_archive_is_told_too(tmp_path: Path) -> None:
    (tmp_path / "some.aar").write_bytes(b"none")
    assert "BadZipFile" in refuse(tmp_path / "some.aar")


@settings(deadline=None)
@given(st.integers(0, 255), st.binary(min_size=1, max_size=12))
def test_altered_headers_are_read_or_refused(start: int, noise: bytes) -> None:
    """Whatever they say, no more is read than is there, and nothing else is raised."""
    whole = make_library(alignments=(PAGE,) * 4)
    place = start % len(whole)
    altered = (whole[:place] + noise + whole[place + len(noise) :])[: len(whole)]
    try:
        library = read_library(io.BytesIO(altered), "a.so", len(altered))
    except ValueError:
        return
    assert library.alignment & (library.alignment - 1) == 0
    assert library.size == len(altered)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_noise_after_the_magic_is_read_or_refused(noise: bytes) -> None:
    content = b"\x7fELF\x02\x01\x01" + noise
    try:
        read_library(io.BytesIO(content), "a.so", len(content))
    except ValueError:
        return


@pytest.mark.skipif(sys.platform != "linux", reason="libraries of this form are Linux's")
def test_a_library_of_this_machine_is_read() -> None:
    path = next(Path(np.__file__).parent.rglob("*.so"))
    with path.open("rb") as file:
        library = read_library(file, path.name, path.stat().st_size)
    assert library.bits == 64
    assert library.machine == {"x86_64": 62, "aarch64": 183}.get(platform.machine(), library.machine)
    assert library.alignment >= 4096
