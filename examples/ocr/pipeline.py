"""Read a page: find its lines of text, turn those that stand upside down, and read each. NumPy and Pillow are enough.

    python pipeline.py BUNDLE PAGE…

BUNDLE is a folder that `bundler build` made of the project beside this file; a PAGE is an image.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from regions import Region, find_regions

Array = np.ndarray[Any, Any]

SHORT_SIDE = 736
"""A page is enlarged until its shorter side has so many pixels, as the detector was used when it was published."""
HEIGHT, CLASSIFIED_WIDTH, READ_WIDTH = 48, 192, 320
"""Pixels of a line as the classifier sees it, and, at least, as the reader does."""
BATCH = 6
SURELY_TURNED = 0.9
LEAST_SCORE = 0.5
"""Lines that are read with a lower score are left out."""
CUBIC = -0.75
"""The sharpness of cubic interpolation that the reader was used with."""
SAME_LINE = 10
"""Pixels by which the tops of two regions of one line may differ."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text, in reading order; `box` has its corners from the top left on, in pixels of the page."""

    text: str
    score: float
    box: Array


def run(bundle: Any, sample: Path) -> list[Line]:
    """The lines of the page at `sample`."""
    with Image.open(sample) as image:
        page = np.asarray(image.convert("RGB"))[:, :, ::-1]  # blue first: the models were trained so
    regions = sort_regions(detect_lines(bundle, page))
    crops = turn_lines(bundle, [crop_region(page, region) for region in regions])
    read = read_lines(bundle, crops)
    return [
        Line(text, score, region.corners)
        for region, (text, score) in zip(regions, read, strict=True)
        if score >= LEAST_SCORE
    ]


def detect_lines(bundle: Any, page: Array) -> list[Region]:
    """The regions of uint8[height, width, 3] that hold text."""
    height, width = page.shape[:2]
    ratio = max(1.0, SHORT_SIDE / min(height, width))
    sizes = [max(32, round(int(size * ratio) / 32) * 32) for size in (height, width)]
    heat = bundle.detect.run(x=normalize(resize_linear(page, *sizes))[None])[0][0, 0]
    return find_regions(heat, (width, height))


def sort_regions(regions: Sequence[Region]) -> list[Region]:
    """From the top to the bottom, and from left to right within a line."""
    ordered = sorted(regions, key=lambda region: (region.corners[0][1], region.corners[0][0]))
    for end in range(1, len(ordered)):
        for place in range(end, 0, -1):
            upper, lower = ordered[place - 1].corners[0], ordered[place].corners[0]
            if abs(lower[1] - upper[1]) >= SAME_LINE or lower[0] >= upper[0]:
                break
            ordered[place - 1 : place + 1] = ordered[place], ordered[place - 1]
    return ordered


def crop_region(page: Array, region: Region) -> Array:
    """The region as an upright uint8[height, width, 3]; one that stands on end is laid down."""
    width, height = (max(1, int(side)) for side in region.sides)
    start, right, _, below = region.corners.astype(float)
    rows, columns = np.arange(height)[:, None, None] / height, np.arange(width)[None, :, None] / width
    crop = sample_cubic(page, start + columns * (right - start) + rows * (below - start))
    return np.rot90(crop) if crop.shape[0] >= 1.5 * crop.shape[1] else crop


def turn_lines(bundle: Any, crops: Sequence[Array]) -> list[Array]:
    """The same, those that stand upside down turned around."""
    turned = list(crops)
    for places in batch_places(crops):
        lines = np.stack([prepare_line(crops[place], CLASSIFIED_WIDTH) for place in places])
        scores = bundle.classify.run(x=lines)[0]
        for place, row in zip(places, scores, strict=True):
            if row.argmax() == 1 and row[1] > SURELY_TURNED:
                turned[place] = crops[place][::-1, ::-1]
    return turned


def read_lines(bundle: Any, crops: Sequence[Array]) -> list[tuple[str, float]]:
    """Text and score of each line."""
    characters = read_characters()
    found: dict[int, tuple[str, float]] = {}
    for places in batch_places(crops):
        widest = max(READ_WIDTH / HEIGHT, *(crops[place].shape[1] / crops[place].shape[0] for place in places))
        lines = np.stack([prepare_line(crops[place], int(HEIGHT * widest)) for place in places])
        scores = bundle.read.run(x=lines)[0]
        found |= {place: decode(row, characters) for place, row in zip(places, scores, strict=True)}
    return [found[place] for place in range(len(crops))]


def batch_places(crops: Sequence[Array]) -> Iterator[list[int]]:
    """The places of lines of about one shape together: a batch is as wide as its widest."""
    order = np.argsort(np.array([crop.shape[1] / crop.shape[0] for crop in crops]))
    for start in range(0, len(order), BATCH):
        yield [int(place) for place in order[start : start + BATCH]]


def decode(scores: Array, characters: Sequence[str]) -> tuple[str, float]:
    """The text of float32[steps, characters]: repeated characters count once, and the first one is no character."""
    best, sure = scores.argmax(axis=1), scores.max(axis=1)
    kept = (best != 0) & np.concatenate([[True], best[1:] != best[:-1]])
    return "".join(characters[index] for index in best[kept]), float(sure[kept].mean()) if kept.any() else 0.0


def read_characters() -> list[str]:
    """What the reader's scores stand for; `fetch_models.py` writes the file."""
    text = Path(__file__).with_name("characters.txt").read_text(encoding="utf-8")
    return ["", *text.split("\n"), " "]


def prepare_line(line: Array, width: int) -> Array:
    """uint8[height, width, 3] as float32[3, 48, width]: its own ratio kept, zeros to its right."""
    own = min(width, math.ceil(HEIGHT * (line.shape[1] / line.shape[0])))
    prepared = np.zeros((3, HEIGHT, width), np.float32)
    prepared[:, :, :own] = normalize(resize_linear(line, HEIGHT, own))
    return prepared


def normalize(image: Array) -> Array:
    """uint8[height, width, 3] as float32[3, height, width] from -1 to 1."""
    return ((image.transpose(2, 0, 1).astype(np.float32) / 255 - 0.5) / 0.5).astype(np.float32)


def resize_linear(image: Array, height: int, width: int) -> Array:
    """uint8[height, width, channels] by linear interpolation between the four nearest pixels, no smoothing before."""
    top, bottom, down = interpolate(image.shape[0], height)
    left, right, across = interpolate(image.shape[1], width)
    values = image.astype(np.float64)
    rows = values[top] * (1 - down)[:, None, None] + values[bottom] * down[:, None, None]
    mixed = rows[:, left] * (1 - across)[None, :, None] + rows[:, right] * across[None, :, None]
    return np.rint(mixed).astype(np.uint8)


def sample_cubic(image: Array, places: Array) -> Array:
    """uint8[…, channels] of an image at float[…, 2] places (x, y), by cubic interpolation; the border goes on."""
    first = np.floor(places).astype(np.intp)
    weights = cubic_weights(places - first)
    mixed = np.zeros((*places.shape[:-1], image.shape[2]))
    for down in range(4):
        for across in range(4):
            y = np.clip(first[..., 1] + down - 1, 0, image.shape[0] - 1)
            x = np.clip(first[..., 0] + across - 1, 0, image.shape[1] - 1)
            mixed += (weights[down][..., 1] * weights[across][..., 0])[..., None] * image[y, x]
    return np.clip(np.rint(mixed), 0, 255).astype(np.uint8)


def cubic_weights(share: Array) -> list[Array]:
    """Of the four nearest pixels, for a place at this share of the way from the second to the third."""
    near = [1 + share, share, 1 - share, 2 - share]
    outer = [CUBIC * (x**3 - 5 * x**2 + 8 * x - 4) for x in near]
    inner = [(CUBIC + 2) * x**3 - (CUBIC + 3) * x**2 + 1 for x in near]
    return [outer[0], inner[1], inner[2], outer[3]]


def interpolate(size: int, wanted: int) -> tuple[Array, Array, Array]:
    """For each of `wanted` places: the two nearest of `size` places, and the share of the second."""
    places = np.clip((np.arange(wanted) + 0.5) * (size / wanted) - 0.5, 0, size - 1)
    first = np.floor(places).astype(np.intp)
    return first, np.minimum(first + 1, size - 1), places - first


def main() -> int:
    parser = argparse.ArgumentParser(description="Read pages.")
    parser.add_argument("bundle", type=Path, metavar="BUNDLE")
    parser.add_argument("pages", type=Path, nargs="+", metavar="PAGE")
    options = parser.parse_args()
    package = json.loads((options.bundle / "bundle.json").read_text(encoding="utf-8"))["package"]
    sys.path.insert(0, str(options.bundle.resolve()))
    sys.dont_write_bytecode = True  # the bundle stays as its manifest lists it
    with importlib.import_module(package).Bundle.open() as bundle:
        for page in options.pages:
            for line in run(bundle, page):
                print(f"{page.name}: {line.score:.2f} {line.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
