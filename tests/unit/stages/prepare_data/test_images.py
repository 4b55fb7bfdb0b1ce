"""Pictures become what the record says, and what cannot is named."""

from __future__ import annotations

import io
import os
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from PIL import Image

from tests.support import models
from tests.support.data_folders import image_model, pixels, prepare, refuse


def save(folder: Path, name: str, array: np.ndarray, **options: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path, **options)
    return path


def declared(**changes: Any) -> dict[str, Any]:
    return {"kind": "images", "preprocessing": {"kind": "image", **changes}}


def one(tmp_path: Path, array: np.ndarray, shape: list[Any] | None = None, **changes: Any) -> np.ndarray:
    """The tensor of a single picture."""
    folder = tmp_path / "data"
    save(folder, "a.png", array)
    _, found = prepare(tmp_path / "out", image_model(tmp_path, shape), folder, **declared(**changes))
    values: np.ndarray = found.sample(0).inputs["x"]
    return values


def test_a_picture_of_the_right_size_is_scaled_and_normalised_only(tmp_path: Path) -> None:
    array = pixels(8, 8)
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    expected = (array.astype(np.float32) / 255 - mean) / std
    np.testing.assert_allclose(one(tmp_path, array, mean=mean, std=std)[0], expected.transpose(2, 0, 1), atol=1e-6)


def test_channels_and_axes_are_ordered_as_declared_or_as_the_model_has_them(tmp_path: Path) -> None:
    array = pixels(8, 8)
    plain = {"scale": 1}
    rows = one(tmp_path / "1", array, ["n", 8, 8, 3], **plain)  # NHWC follows from the signature
    assert np.array_equal(rows[0], array)
    assert np.array_equal(one(tmp_path / "2", array, **plain, colour="BGR")[0], array[..., ::-1].transpose(2, 0, 1))
    grey = one(tmp_path / "3", array, [1, 1, 8, 8], **plain)  # and so does grey
    assert np.array_equal(grey[0, 0], np.asarray(Image.fromarray(array).convert("L")))
    assert one(tmp_path / "4", array, [3, 8, 8], input="x").shape == (3, 8, 8)


def test_integers_take_the_bytes_as_they_are(tmp_path: Path) -> None:
    array = pixels(8, 8)
    folder = tmp_path / "data"
    save(folder, "a.png", array)
    model = image_model(tmp_path, element=TensorProto.UINT8)
    result, found = prepare(tmp_path / "out", model, folder, **declared())
    assert np.array_equal(found.sample(0).inputs["x"][0], array.transpose(2, 0, 1))
    assert result.facts["preprocessing"]["scale"] == 1
    half = image_model(tmp_path / "half", element=TensorProto.FLOAT16)
    assert prepare(tmp_path / "h", half, folder, **declared())[1].sample(0).inputs["x"].dtype == np.float16


def test_resizing_is_pillows(tmp_path: Path) -> None:
    array = pixels(37, 91)
    whole = Image.fromarray(array)
    for name, method in (("bilinear", Image.Resampling.BILINEAR), ("bicubic", Image.Resampling.BICUBIC)):
        expected = np.asarray(whole.resize((8, 8), method)).transpose(2, 0, 1)
        assert np.array_equal(one(tmp_path / name, array, scale=1, filter=name)[0], expected)


def test_cropping_takes_the_centre(tmp_path: Path) -> None:
    array = np.zeros((8, 32, 3), np.uint8)
    array[:, 12:20] = 255
    folder = tmp_path / "data"
    save(folder, "a.png", array)
    model = image_model(tmp_path)
    _, found = prepare(tmp_path / "out", model, folder, **declared(resize="crop"), allow_constant=True)
    assert (found.sample(0).inputs["x"] == 1).all()
    options = declared(resize="crop", crop_fraction=0.5, filter="nearest")
    _, half = prepare(tmp_path / "half", model, save(tmp_path, "b.png", pixels(16, 16)), **options)
    inner = pixels(16, 16)[4:12, 4:12].astype(np.float32) / 255
    np.testing.assert_allclose(half.sample(0).inputs["x"][0], inner.transpose(2, 0, 1), atol=1e-6)


def test_padding_keeps_everything_and_fills_the_rest(tmp_path: Path) -> None:
    array = np.full((4, 8, 3), 200, np.uint8)
    values = one(tmp_path, array, resize="pad", background=[10, 20, 30], scale=1)[0]
    assert (values[:, 2:6] == 200).all()
    assert values[:, 0, 0].tolist() == [10, 20, 30]
    assert values[:, 7, 7].tolist() == [10, 20, 30]


def test_without_antialiasing_only_the_nearest_pixels_count(tmp_path: Path) -> None:
    array = np.zeros((64, 64, 3), np.uint8)
    array[::8, ::8] = 255  # far from the middle of every output pixel
    folder, model = tmp_path / "data", image_model(tmp_path)
    save(folder, "a.png", array)
    _, smooth = prepare(tmp_path / "smooth", model, folder, **declared())
    _, sparse = prepare(tmp_path / "sparse", model, folder, **declared(antialias=False), allow_constant=True)
    assert smooth.sample(0).inputs["x"].max() > 0
    assert sparse.sample(0).inputs["x"].max() == 0


def test_orientation_of_a_camera_is_applied(tmp_path: Path) -> None:
    array = pixels(8, 8)
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn clockwise makes it right
    folder = tmp_path / "data"
    save(folder, "a.png", array, exif=exif)
    _, found = prepare(tmp_path / "out", image_model(tmp_path), folder, **declared(scale=1))
    assert np.array_equal(found.sample(0).inputs["x"][0], np.rot90(array, -1).transpose(2, 0, 1))


def test_palettes_grey_and_transparency_become_colours(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    Image.fromarray(pixels(8, 8)).convert("P").save(folder / "1-palette.png")
    Image.fromarray(pixels(8, 8, 1)).save(folder / "2-grey.png")
    clear = np.dstack([pixels(8, 8), np.zeros((8, 8), np.uint8)])
    Image.fromarray(clear).save(folder / "3-clear.png")
    Image.fromarray(pixels(8, 8, 1).astype(np.uint16) * 257).save(folder / "4-deep.png")
    Image.fromarray(pixels(8, 8)).convert("CMYK").save(folder / "5-print.jpg")
    Image.fromarray(pixels(8, 8, 1) > 127).save(folder / "6-bits.png")
    _, found = prepare(tmp_path / "out", image_model(tmp_path), folder, **declared(scale=1, background=[1, 2, 3]))
    values = [found.sample(index).inputs["x"][0] for index in range(6)]
    assert np.array_equal(values[1][0], pixels(8, 8, 1))
    assert values[2].reshape(3, -1).T.tolist() == [[1, 2, 3]] * 64
    assert np.array_equal(values[3][1], pixels(8, 8, 1))
    assert set(np.unique(values[5])) == {0, 255}


def test_every_damaged_picture_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    save(folder, "good.png", pixels(8, 8))
    whole = io.BytesIO()
    Image.fromarray(pixels(64, 64)).save(whole, "JPEG")
    (folder / "cut.jpg").write_bytes(whole.getvalue()[:700])
    (folder / "empty.png").write_bytes(b"")
    (folder / "text.png").write_text("no picture")
    frames = [Image.fromarray(pixels(8, 8, seed=index)) for index in range(3)]
    frames[0].save(folder / "moving.gif", save_all=True, append_images=frames[1:])
    Image.fromarray(np.zeros((8, 8), np.float32)).save(folder / "range.tif")
    error = refuse(tmp_path / "out", image_model(tmp_path), folder, **declared())
    assert error.message == "samples cannot be read"
    assert [line.partition(":")[0] for line in error.details] == [
        "cut.jpg",
        "empty.png",
        "moving.gif",
        "range.tif",
        "text.png",
    ]
    assert "3 frames" in error.details[2]
    assert "bundler skips none silently" in str(error.hint)


def claim(path: Path, width: int, height: int) -> None:
    """A PNG file whose header says a size that its data do not have."""
    stream = io.BytesIO()
    Image.new("L", (1, 1)).save(stream, "PNG")
    whole = bytearray(stream.getvalue())
    whole[16:24] = struct.pack(">II", width, height)
    whole[29:33] = struct.pack(">I", zlib.crc32(whole[12:29]))
    path.write_bytes(bytes(whole))


def test_a_small_file_that_declares_a_huge_picture_is_rejected(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    save(folder, "a.png", pixels(8, 8))
    claim(folder / "bomb.png", 40_000, 30_000)
    claim(folder / "large.png", 12_000, 12_000)
    error = refuse(tmp_path / "out", image_model(tmp_path), folder, **declared())
    assert error.details[0].startswith("bomb.png: it declares more than 100,000,000 pixels")
    assert error.details[1].startswith("large.png: it declares 12000 x 12000 pixels")


def test_folders_below_hidden_files_and_other_kinds(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    for name in ("cat/10.png", "cat/9.png", "dog/1.PNG", ".hidden.png", ".git/2.png"):
        save(folder, name, pixels(8, 8, seed=len(name)), format="PNG")
    (folder / "Thumbs.db").write_bytes(b"")
    (folder / "labels.csv").write_text("cat,dog")
    (folder / "preprocessing.toml").write_text('kind = "image"')
    result, found = prepare(tmp_path / "out", image_model(tmp_path), folder, **declared())
    assert [entry["name"] for entry in found.entries] == ["cat/9.png", "cat/10.png", "dog/1.PNG"]
    assert result.notes[0].text == "skipped, because they are not images: labels.csv"


def test_links_are_followed_to_files_and_never_in_circles(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    save(folder, "a.png", pixels(8, 8))
    (folder / "b.png").symlink_to(save(tmp_path, "elsewhere.png", pixels(8, 8, seed=1)))
    (folder / "circle").symlink_to(folder)
    _, found = prepare(tmp_path / "out", image_model(tmp_path), folder, **declared())
    assert [entry["name"] for entry in found.entries] == ["a.png", "b.png"]
    (folder / "gone.png").symlink_to(tmp_path / "nothing")
    error = refuse(tmp_path / "other", image_model(tmp_path), folder, **declared())
    assert error.details == ("gone.png: it cannot be read: No such file or directory",)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
def test_a_pipe_in_the_folder_is_rejected(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    save(folder, "a.png", pixels(8, 8))
    os.mkfifo(folder / "b.png")
    assert refuse(tmp_path / "1", image_model(tmp_path), folder, **declared()).message == "b.png is not a regular file"
    (folder / "b.png").unlink()
    os.mkfifo(folder / "b.npz")
    error = refuse(tmp_path / "2", image_model(tmp_path), folder, kind="samples")
    assert error.details[0].startswith("b: the samples in b.npz cannot be read")


def test_a_folder_without_pictures_says_what_it_holds(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    assert refuse(tmp_path / "1", image_model(tmp_path), folder, **declared()).details == ("it is empty",)
    (folder / "a.wav").write_bytes(b"")
    error = refuse(tmp_path / "2", image_model(tmp_path), folder, **declared())
    assert error.message == "there are no images in data"
    assert error.details == ("it holds 1 of .wav",)


@pytest.mark.parametrize(
    ("shape", "changes", "words"),
    [
        (["n", 3, "h", "w"], {}, "accepts images of any size, and no size is declared"),
        (["n", 3, 8, 8], {"size": [9, 9]}, "size is [9, 9]"),
        (["n", 3, 8, 8], {"input": "X"}, "did you mean 'x'?"),
        (["n", 3, 8, 8], {"colour": "L"}, "L has 1 channel, and 'x' has 3 (NCHW)"),
        (["n", 1, 8, 8], {"mean": [1.0, 2.0, 3.0]}, "mean has 3 values"),
        ([4, 3, 8, 8], {}, "takes 4 images at once"),
        (["n", 8], {}, "it has no input that can be an image"),
        (["n", 8], {"input": "x"}, "an image has three or four axes"),
    ],
)
def test_incompatible_declarations_are_reported(tmp_path: Path, shape: list[Any], changes: Any, words: str) -> None:
    folder = tmp_path / "data"
    save(folder, "a.png", pixels(8, 8))
    assert words in refuse(tmp_path / "out", image_model(tmp_path, shape), folder, **declared(**changes)).message


def test_further_inputs_are_constants_or_named_as_missing(tmp_path: Path) -> None:
    nodes = [models.helper.make_node("Mul", ["x", "scale"], ["y"])]
    inputs = [models.value("x", ["n", 3, 8, 8]), models.value("scale", ["n", 1, 1, 1])]
    model = models.save(models.make_model(nodes, inputs, [models.value("y", ["n", 3, 8, 8])]), tmp_path)
    folder = tmp_path / "data"
    save(folder, "a.png", pixels(8, 8))
    error = refuse(tmp_path / "1", model, folder, **declared(input="x"))
    assert error.message == "the preprocessing does not fit the model: no value is declared for 'scale'"
    result, found = prepare(tmp_path / "2", model, folder, **declared(constants={"scale": 2}))
    assert found.sample(0).inputs["scale"].tolist() == [[[[2.0]]]]
    assert result.facts["constant_inputs"] == []
    assert "is not float32" in refuse(tmp_path / "3", model, folder, **declared(constants={"scale": "two"})).message
    assert (
        "does not exist"
        in refuse(tmp_path / "4", model, folder, **declared(input="x", constants={"scales": 2, "scale": 1})).message
    )


def test_the_record_is_whole(tmp_path: Path) -> None:
    save(tmp_path / "data", "a.png", pixels(8, 8))
    result, _ = prepare(tmp_path / "out", image_model(tmp_path), tmp_path / "data", **declared(mean=[0.5]))
    assert result.facts["preprocessing"] == {
        "kind": "image",
        "input": "x",
        "dtype": "float32",
        "size": [8, 8],
        "shape": [1, 3, 8, 8],
        "resize": "stretch",
        "filter": "bilinear",
        "antialias": True,
        "crop_fraction": 1.0,
        "background": [0, 0, 0],
        "colour": "RGB",
        "layout": "NCHW",
        "scale": 1 / 255,
        "mean": [0.5, 0.5, 0.5],
        "std": [1.0, 1.0, 1.0],
        "constants": {},
    }
