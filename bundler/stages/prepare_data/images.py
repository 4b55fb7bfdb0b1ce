"""Pictures: decoded by Pillow one at a time, as their record specifies."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from bundler.model.preprocessing import ImageDeclaration, ImageRecord, read_declaration
from bundler.model.signature import Signature
from bundler.onnxkit.elements import element_named
from bundler.onnxkit.value_files import Value
from bundler.stages.prepare_data.dataset import DataSet, UnreadableError, taker
from bundler.stages.prepare_data.folders import find_files
from bundler.stages.prepare_data.image_declaration import resolve_image
from bundler.stages.prepare_data.resolving import make_constants
from bundler.stages.prepare_data.spec import Options

MAX_PIXELS: Final = 100_000_000
"""More than any camera's; 300 MB in memory. A small file can declare any size."""
_FORMATS: Final = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
"""Formats without Pillow's rare ones and those that start a program (EPS)."""
_FILTERS: Final = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "nearest": Image.Resampling.NEAREST,
}
_BITS_16: Final = ("I;16", "I;16B", "I;16L", "I;16N")


def open_images(root: Path, signature: Signature, options: Options) -> DataSet:
    """The pictures in a folder and below, in the natural order of their names. Raises `UsageError`."""
    declaration = read_declaration(options.preprocessing)
    if not isinstance(declaration, ImageDeclaration):
        raise TypeError("the declaration is not for images")
    record = resolve_image(declaration, signature)
    constants = make_constants(record.constants, signature)
    found = find_files(root, "images")

    def load(position: int) -> Mapping[str, Value]:
        return {record.input: load_image(found.paths[position], record), **constants}

    return DataSet(total=len(found.paths), take=taker(found.names, load), record=record, notes=found.notes)


def load_image(path: Path, record: ImageRecord) -> np.ndarray:
    """The picture as model input. Raises `UnreadableError`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # odd metadata; what the pixels need is checked here
        try:
            with Image.open(path, formats=_FORMATS) as image:
                _check(image)
                ImageOps.exif_transpose(image, in_place=True)
                return to_array(_resize(_convert(image, record), record), record)
        except UnidentifiedImageError as error:
            raise UnreadableError("it is not an image of a supported format, or it is damaged") from error
        except Image.DecompressionBombError as error:
            raise UnreadableError(f"it declares more than {MAX_PIXELS:,} pixels") from error
        except OSError as error:
            raise UnreadableError(f"it cannot be read: {error.strerror or error}") from error
        except (ValueError, SyntaxError, EOFError, TypeError, IndexError, KeyError, ZeroDivisionError) as error:
            raise UnreadableError(f"it is damaged: {error}") from error  # what Pillow's decoders raise for such files


def _check(image: Image.Image) -> None:
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise UnreadableError(f"it declares {width} x {height} pixels, more than {MAX_PIXELS:,}")
    if image.format != "MPO" and getattr(image, "n_frames", 1) > 1:  # MPO: a photograph with a preview beside it
        frames = getattr(image, "n_frames", 1)
        raise UnreadableError(f"it has {frames} frames, and only single images are supported")


def _convert(image: Image.Image, record: ImageRecord) -> Image.Image:
    """8 bits per channel, without transparency."""
    mode = "L" if record.colour == "L" else "RGB"
    if image.mode in _BITS_16 or (image.mode == "I" and image.format == "PNG"):
        image = Image.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))
    elif image.mode in ("I", "F"):
        raise UnreadableError(f"its pixels are of mode {image.mode}, whose range is not known; convert it to 8 bits")
    if image.has_transparency_data:
        front = image.convert("RGBA")
        behind = Image.new("RGBA", front.size, (*record.background, 255))
        image = Image.alpha_composite(behind, front)
    return image if image.mode == mode else image.convert("RGB").convert(mode)


def _resize(image: Image.Image, record: ImageRecord) -> Image.Image:
    height, width = record.size
    if record.resize == "pad":
        return _pad(image, width, height, record)
    box = (0.0, 0.0, float(image.width), float(image.height))
    if record.resize == "crop":
        box = _centred(image.width, image.height, width / height, record.crop_fraction)
    return _scale(image, width, height, box, record)


def _centred(width: int, height: int, ratio: float, fraction: float) -> tuple[float, float, float, float]:
    """The largest centred part with the aspect ratio `ratio`, its sides times `fraction`."""
    across = min(width, height * ratio) * fraction
    down = min(height, width / ratio) * fraction
    left, top = (width - across) / 2, (height - down) / 2
    return max(left, 0.0), max(top, 0.0), min(left + across, width), min(top + down, height)


def _pad(image: Image.Image, width: int, height: int, record: ImageRecord) -> Image.Image:
    factor = min(width / image.width, height / image.height)
    across = min(max(round(image.width * factor), 1), width)
    down = min(max(round(image.height * factor), 1), height)
    small = _scale(image, across, down, (0.0, 0.0, float(image.width), float(image.height)), record)
    whole = Image.new("RGB", (1, 1), record.background).convert(image.mode).resize((width, height))
    whole.paste(small, ((width - across) // 2, (height - down) // 2))
    return whole


def _scale(image: Image.Image, width: int, height: int, box: Any, record: ImageRecord) -> Image.Image:
    if record.antialias:
        return image.resize((width, height), _FILTERS[record.filter], box=box)
    left, top, right, bottom = box
    data = ((right - left) / width, 0.0, left, 0.0, (bottom - top) / height, top)
    return image.transform((width, height), Image.Transform.AFFINE, data, resample=_FILTERS[record.filter])


def to_array(image: Image.Image, record: ImageRecord) -> np.ndarray:
    """Pixels as model input: scaled, normalised, typed, axes in order."""
    pixels = np.asarray(image).reshape(*record.size, -1)
    if record.colour == "BGR":
        pixels = pixels[..., ::-1]
    numbers = pixels.astype(np.float32)
    numbers *= np.float32(record.scale)
    numbers -= np.array(record.mean, np.float32)
    numbers /= np.array(record.std, np.float32)
    dtype = element_named(record.dtype).dtype
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        typed = np.rint(numbers).clip(limits.min, limits.max).astype(dtype)
    else:
        typed = numbers.astype(dtype, copy=False)
    ordered = typed.transpose(2, 0, 1) if record.layout == "NCHW" else typed
    return np.ascontiguousarray(ordered).reshape(record.shape)
