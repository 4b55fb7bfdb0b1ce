"""Pictures and recordings, with what the stage that prepares data makes of them: every loader must do the same."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from bundler.model.codec import encode
from bundler.model.preprocessing import AudioRecord, ImageRecord
from bundler.stages.prepare_data.audio import load_audio
from bundler.stages.prepare_data.images import load_image
from tests.support.data_folders import write_wave

SOURCES = ((1, 1), (1, 97), (120, 1), (2, 3), (8, 8), (31, 17), (64, 64), (150, 101), (97, 260), (480, 640), (33, 900))
SIZES = ((1, 1), (8, 8), (1, 9), (5, 17), (32, 32), (64, 48), (41, 97))
DTYPES = ("float32", "float16", "bfloat16", "float64", "uint8", "int8", "int16", "int32", "int64")
COUNT = 500
RATES = (7999, 8000, 11025, 16000, 22050, 44100, 48000, 96000)
SOUNDS = 160


def write_images(folder: Path) -> None:
    """`index.json` with a list of cases, and their files in `folder`."""
    chance = random.Random(7)  # noqa: S311 (samples, not secrets)
    cases = [_write_case(folder, f"{number}", chance) for number in range(COUNT)]
    modes = [_write_mode(folder, name, picture) for name, picture in _list_modes().items()]
    (folder / "index.json").write_text(json.dumps({"cases": cases, "modes": modes}), "utf-8")


def make_record(chance: random.Random, **changes: Any) -> ImageRecord:
    """A record of any kind."""
    colour, layout = chance.choice(("RGB", "BGR", "L")), chance.choice(("NCHW", "NHWC"))
    size, count = chance.choice(SIZES), 1 if colour == "L" else 3
    picture = (count, *size) if layout == "NCHW" else (*size, count)
    dtype = changes.get("dtype") or chance.choice(DTYPES)
    whole = "int" in dtype
    fields: dict[str, Any] = {
        "input": "x",
        "dtype": dtype,
        "size": size,
        "shape": picture if chance.random() < 0.2 else (1, *picture),
        "resize": chance.choice(("stretch", "crop", "pad")),
        "filter": chance.choice(("bilinear", "bicubic", "nearest")),
        "antialias": chance.random() < 0.6,
        "crop_fraction": chance.choice((1.0, 0.875, 0.3, 0.7121)),
        "background": tuple(chance.randrange(256) for _ in range(3)),
        "colour": colour,
        "layout": layout,
        "scale": chance.choice((1.0, 0.37, 300.0)) if whole else chance.choice((1 / 255, 1.0, 1 / 127.5)),
        "mean": tuple(chance.uniform(-1, 200 if whole else 1) for _ in range(count)),
        "std": tuple(chance.uniform(0.2, 2) for _ in range(count)),
        "constants": {},
    }
    return ImageRecord(**{**fields, **changes})


def _write_case(folder: Path, name: str, chance: random.Random) -> dict[str, Any]:
    height, width = chance.choice(SOURCES)
    values = np.random.default_rng(len(name) + chance.randrange(1 << 20))
    pixels = values.integers(0, 256, (height, width, 4), dtype=np.uint8)
    if chance.random() < 0.5:
        pixels[..., 3] = 255
    else:
        pixels[..., 3][values.random((height, width)) < 0.3] = 0
    return _write(folder, name, Image.fromarray(pixels), make_record(chance))


def _list_modes() -> dict[str, Image.Image]:
    """Pictures as files have them: grey, of 16 bits, with a palette, with parts that are transparent."""
    values = np.random.default_rng(1)
    plain = values.integers(0, 256, (37, 53, 3), dtype=np.uint8)
    palette = Image.fromarray(plain).quantize(17)
    return {
        "rgb": Image.fromarray(plain),
        "grey": Image.fromarray(plain[..., 0]),
        "grey-alpha": Image.merge("LA", [Image.fromarray(plain[..., 0]), Image.fromarray(plain[..., 1])]),
        "grey-16": Image.fromarray(values.integers(0, 65536, (37, 53), dtype=np.uint16)),
        "palette": palette,
        "bits": Image.fromarray(plain[..., 0]).convert("1"),
    }


def _write_mode(folder: Path, name: str, picture: Image.Image) -> dict[str, Any]:
    return _write(folder, name, picture, make_record(random.Random(name), dtype="float32"))  # noqa: S311


def _write(folder: Path, name: str, picture: Image.Image, record: ImageRecord) -> dict[str, Any]:
    picture.save(folder / f"{name}.png")
    rgba = np.asarray(picture.convert("RGBA") if picture.mode != "I;16" else Image.new("RGBA", (1, 1))).astype("<u4")
    argb = rgba[..., 3] << 24 | rgba[..., 0] << 16 | rgba[..., 1] << 8 | rgba[..., 2]
    argb.astype("<u4").tofile(folder / f"{name}.argb")
    load_image(folder / f"{name}.png", record).tofile(folder / f"{name}.expected")
    return {"name": name, "width": picture.width, "height": picture.height, "record": encode(record)}


def write_camera(folder: Path) -> None:
    """A picture in the planes of a camera, each followed by what does not belong to it, and its pixels."""
    values = np.random.default_rng(3)
    planes = values.integers(0, 256, (3, 24, 40), dtype=np.uint8)
    planes[1:] = planes[1:, ::2, ::2].repeat(2, 1).repeat(2, 2)
    merged = Image.merge("YCbCr", [Image.fromarray(plane) for plane in planes]).convert("RGB")
    np.asarray(merged).tofile(folder / "camera.rgb")
    padded = np.full((24, 48), 9, np.uint8)
    padded[:, :40] = planes[0]
    padded.tofile(folder / "camera.y")
    for name, plane in (("u", planes[1]), ("v", planes[2])):
        spread = np.full((12, 50), 9, np.uint8)
        spread[:, 0:40:2] = plane[::2, ::2]
        spread.tofile(folder / f"camera.{name}")


def write_sounds(folder: Path) -> None:
    """`sounds.json` with a list of cases, and their files in `folder`."""
    chance = random.Random(11)  # noqa: S311 (samples, not secrets)
    cases = [_write_sound(folder, f"sound{number}", chance) for number in range(SOUNDS)]
    (folder / "sounds.json").write_text(json.dumps(cases), "utf-8")


def _make_audio_record(chance: random.Random, rate: int) -> AudioRecord:
    target = chance.choice((rate, 16000, 8000, 44100))
    return AudioRecord(
        input="x",
        dtype=chance.choice(("float32", "float32", "float32", "float16", "bfloat16", "float64")),
        rank=chance.choice((1, 2, 3)),
        sample_rate=target,
        mono=chance.choice(("mean", "first")),
        resample="none" if target == rate and chance.random() < 0.5 else chance.choice(("sinc", "linear")),
        length=chance.choice((None, None, 1, 400, 16000, 50000)),
        normalise=chance.choice(("none", "peak", "standard")),
        constants={},
    )


def _write_sound(folder: Path, name: str, chance: random.Random) -> dict[str, Any]:
    rate, channels = chance.choice(RATES), chance.choice((1, 2, 5))
    frames = chance.choice((1, 2, 100, 5000, 30000))
    whole = chance.random() < 0.6
    values = np.random.default_rng(chance.randrange(1 << 20)).integers(-32768, 32768, (frames, channels))
    if whole:
        write_wave(folder / f"{name}.wav", values.clip(-32767) / 32767, rate=rate)
        values.clip(-32767).astype("<i2").tofile(folder / f"{name}.raw")
    else:
        write_wave(folder / f"{name}.wav", values / 30000, rate=rate, bits=32, coding=3)
        (values / 30000).astype("<f4").tofile(folder / f"{name}.raw")
    record = _make_audio_record(chance, rate)
    expected = load_audio(folder / f"{name}.wav", record)
    expected.astype("<f8").tofile(folder / f"{name}.expected")
    facts = {"name": name, "rate": rate, "channels": channels, "whole": whole, "shape": list(expected.shape)}
    return {**facts, "record": encode(record)}
