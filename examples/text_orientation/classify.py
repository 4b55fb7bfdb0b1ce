"""Tell whether lines of text stand upside down, with nothing but a bundle, NumPy, Pillow and ONNX Runtime.

    python classify.py BUNDLE IMAGE…

BUNDLE is a folder that `bundler build` made; an IMAGE shows one line of text.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

HEIGHT, WIDTH = 48, 192
LABELS = ("0", "180")
"""Degrees by which the text is turned, in the order of the model's scores."""


def load_model(bundle: Path) -> Any:
    """The bundle's model. In a project of your own, install the bundle and import its package by name."""
    package = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["package"]
    sys.path.insert(0, str(bundle.resolve()))
    sys.dont_write_bytecode = True  # the bundle stays as its manifest lists it
    return importlib.import_module(package).Model()


def read_image(path: Path) -> np.ndarray[Any, Any]:
    """uint8[height, width, 3], blue first: the model was trained so."""
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))[:, :, ::-1]


def prepare_image(image: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """uint8[height, width, 3] as float32[3, 48, 192] from -1 to 1: its own ratio kept, zeros to its right."""
    width = min(WIDTH, math.ceil(HEIGHT * (image.shape[1] / image.shape[0])))
    pixels = resize_linear(image, HEIGHT, width)
    prepared = np.zeros((3, HEIGHT, WIDTH), np.float32)
    prepared[:, :, :width] = (pixels.transpose(2, 0, 1).astype(np.float32) / 255 - 0.5) / 0.5
    return prepared


def resize_linear(image: np.ndarray[Any, Any], height: int, width: int) -> np.ndarray[Any, Any]:
    """uint8[height, width, channels] by linear interpolation between the four nearest pixels, no smoothing before."""
    top, bottom, down = interpolation(image.shape[0], height)
    left, right, across = interpolation(image.shape[1], width)
    values = image.astype(np.float64)
    rows = values[top] * (1 - down)[:, None, None] + values[bottom] * down[:, None, None]
    mixed = rows[:, left] * (1 - across)[None, :, None] + rows[:, right] * across[None, :, None]
    return np.rint(mixed).astype(np.uint8)


def interpolation(size: int, wanted: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """For each of `wanted` places: the two nearest of `size` places, and the share of the second."""
    places = np.clip((np.arange(wanted) + 0.5) * (size / wanted) - 0.5, 0, size - 1)
    first = np.floor(places).astype(np.intp)
    return first, np.minimum(first + 1, size - 1), places - first


def classify(model: Any, paths: list[Path]) -> list[tuple[str, float]]:
    """Label and score of each image, the model run once for all."""
    images = np.stack([prepare_image(read_image(path)) for path in paths])
    scores = model.run(x=images)[0]
    return [(LABELS[int(np.argmax(row))], float(np.max(row))) for row in scores]


def main() -> int:
    parser = argparse.ArgumentParser(description="Tell whether lines of text stand upside down.")
    parser.add_argument("bundle", type=Path, metavar="BUNDLE")
    parser.add_argument("images", type=Path, nargs="+", metavar="IMAGE")
    options = parser.parse_args()
    for path, (label, score) in zip(options.images, classify(load_model(options.bundle), options.images), strict=True):
        print(f"{path}: {label} {score:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
