"""Any file in a user's folder is read or named in an error, and nothing else happens."""

from __future__ import annotations

import contextlib
import io
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from bundler.model.errors import UsageError
from bundler.model.preprocessing import ImageDeclaration
from bundler.model.signature import Port, Signature, ValueType
from bundler.onnxkit import archives
from bundler.onnxkit.sample_files import natural_key, open_samples
from bundler.stages.prepare_data.dataset import UnreadableError
from bundler.stages.prepare_data.image_declaration import resolve_image
from bundler.stages.prepare_data.images import load_image
from bundler.support.text import visible
from tests.support.data_folders import pixels

PORT = Port(name="x", type=ValueType(element_type="float32", shape=("n", 3, 8, 8)))
SIGNATURE = Signature(inputs=(PORT,), outputs=())


def encoded(kind: str) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels(16, 12)).save(stream, kind)
    return stream.getvalue()


PICTURES = {kind: encoded(kind) for kind in ("PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP", "PPM")}


def damage(data: st.DataObject, whole: bytes) -> bytes:
    """Some bytes changed, and perhaps the end cut off."""
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(0, 8))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    return bytes(damaged[: data.draw(st.integers(0, len(whole)))])


@settings(max_examples=300, deadline=None)
@given(kind=st.sampled_from(sorted(PICTURES)), data=st.data())
def test_damaged_pictures(tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("picture") / "a.png"
    path.write_bytes(damage(data, PICTURES[kind]))
    record = resolve_image(ImageDeclaration(), SIGNATURE)
    with contextlib.suppress(UnreadableError):
        assert load_image(path, record).shape == (1, 3, 8, 8)


@settings(max_examples=100, deadline=None)
@given(
    height=st.integers(1, 300),
    width=st.integers(1, 300),
    resize=st.sampled_from(["stretch", "crop", "pad"]),
    rest=st.tuples(st.booleans(), st.floats(0.01, 1)),
)
def test_pictures_of_every_shape(
    tmp_path_factory: pytest.TempPathFactory, height: int, width: int, resize: str, rest: tuple[bool, float]
) -> None:
    antialias, fraction = rest
    path = tmp_path_factory.mktemp("picture") / "a.bmp"
    Image.fromarray(np.full((height, width, 3), 255, np.uint8)).save(path)
    declaration = ImageDeclaration(resize=resize, antialias=antialias, crop_fraction=fraction, background=(255,) * 3)
    assert (load_image(path, resolve_image(declaration, SIGNATURE)) == 1).all()


def archive(stored: int) -> bytes:
    stream = io.BytesIO()
    save = np.savez_compressed if stored else np.savez
    save(stream, x=np.arange(4 * 3 * 64, dtype=np.float32).reshape(4, 3, 8, 8)[:, None])
    return stream.getvalue()


ARCHIVES = (archive(0), archive(1))


@settings(max_examples=200, deadline=None)
@given(which=st.integers(0, 1), data=st.data())
def test_damaged_archives(tmp_path_factory: pytest.TempPathFactory, which: int, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("archive") / "a.npz"
    path.write_bytes(damage(data, ARCHIVES[which]))
    with contextlib.suppress(UsageError):
        found = open_samples(path, SIGNATURE)
        with contextlib.closing(found):
            for index in range(min(len(found.names), 9)):
                found.read(index)


@pytest.mark.parametrize("given", ["archive", "folder"])
@pytest.mark.parametrize(
    ("kind", "why"), [("<f4", "it declares more than it can hold"), ("<U0", "it has elements of no size")]
)
def test_an_archive_that_declares_more_than_it_holds(tmp_path: Path, given: str, kind: str, why: str) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": kind, "fortran_order": False, "shape": (1 << 40, 1, 3, 8, 8)}
    )
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as made:
        made.writestr("x.npy", stream.getvalue())
    with pytest.raises(UsageError, match="cannot be read") as caught:
        open_samples(tmp_path / "a.npz" if given == "archive" else tmp_path, SIGNATURE).read(0)
    assert caught.value.details == (why,)


def write_zeros(path: Path, shape: tuple[int, ...], *, fortran: bool = False) -> None:
    """An archive with one array that takes thousands of times the room that it has on the disk."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": fortran, "shape": shape})
    block, left = bytes(1 << 24), int(np.prod(shape)) * 4
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made, made.open("x.npy", "w", force_zip64=True) as member:
        member.write(head.getvalue())
        while left > 0:
            member.write(block[:left])
            left -= len(block)


@pytest.mark.parametrize(
    ("shape", "fortran"),
    [((1, 3, 8, 1 << 17), False), ((2, 1, 3, 8, 1 << 17), False), ((1 << 16, 1, 3, 8, 2), True)],
    ids=["one sample", "one of several", "not sample by sample"],
)
def test_an_archive_that_unpacks_to_more_than_a_sample_takes_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], *, fortran: bool
) -> None:
    monkeypatch.setattr(archives, "MAX_SAMPLE_BYTES", 1 << 22)
    write_zeros(tmp_path / "a.npz", shape, fortran=fortran)
    assert (tmp_path / "a.npz").stat().st_size < 1 << 16
    found = open_samples(tmp_path / "a.npz", SIGNATURE)
    tracemalloc.start()
    with contextlib.closing(found), pytest.raises(UsageError, match="cannot be read") as caught:
        found.read(0)
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()
    assert "has 12,582,912 bytes, more than 4,194,304" in caught.value.details[0]


def test_an_archive_with_more_arrays_than_a_model_has_inputs(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **{f"x{number}": np.zeros(1) for number in range(1001)})
    with pytest.raises(UsageError, match="cannot be read") as caught:
        open_samples(tmp_path / "a.npz", SIGNATURE)
    assert caught.value.details == ("it holds 1,001 arrays, more than 1,000",)


def test_a_value_that_takes_gigabytes_is_not_read(tmp_path: Path) -> None:
    place = tmp_path / "test_data_set_0" / "input_0.pb"
    place.parent.mkdir()
    place.touch()
    os.truncate(place, (1 << 30) + 1)
    with pytest.raises(UsageError, match="cannot be read as a value") as caught:
        open_samples(tmp_path, SIGNATURE).read(0)
    assert caught.value.details == ("it is larger than 1,073,741,824 bytes",)


def test_a_value_that_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "test_data_set_0").mkdir()
    os.mkfifo(tmp_path / "test_data_set_0" / "input_0.pb")
    with pytest.raises(UsageError, match="cannot be read as a value") as caught:
        open_samples(tmp_path, SIGNATURE).read(0)
    assert caught.value.details == ("it is not a regular file",)


@given(names=st.lists(st.text(max_size=8), max_size=8))
def test_every_name_has_its_place_and_can_be_printed(names: list[str]) -> None:
    assert len(sorted(names, key=natural_key)) == len(names)
    assert all(visible(name).isprintable() for name in names)
