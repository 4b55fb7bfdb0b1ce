"""Images rendered from text with Pillow's own font, and what the models of rapidocr make of them.

Lines are for the orientation classifier: `x`[batch, 3, 48, 192] -> scores[batch, 2] (upright, turned by 180 degrees).
Pages are for the detector: `x`[batch, 3, height, width] -> a map[batch, 1, height, width] of where text stands, from
0 to 1. Everything follows from the seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime as ort
from PIL import Image, ImageDraw, ImageFont

from tests.support.real_models import load_example

_TEXT = (
    "open Emergency exit please Turn the page around invoice 2026-11-20 14:35 Total 12.50 station Platform 7b closed "
    "until further notice Fragile this side UP road works ahead No. 4711 kitchen library quiet Street baker fish and "
    "chips"
)
WORDS: Final = tuple(_TEXT.split())
PAGE: Final = (320, 320)
"""Height and width of a page in pixels; the detector takes multiples of 32."""
THRESHOLD: Final = 0.3
"""From here on a pixel of the detector's map counts as text, as rapidocr has it."""
SHRINKING: Final = 1 - 0.4**2
"""The detector was trained to mark the core of a line: a box is drawn in by this share of its area over its rim."""
Box = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text; `turned` where it stands upside down."""

    image: Image.Image
    turned: bool


@dataclass(frozen=True, slots=True)
class Page:
    """Some lines on one page; `boxes` (left, top, right, bottom) say where their ink is."""

    image: Image.Image
    boxes: tuple[Box, ...]


def draw_lines(count: int, *, seed: int = 0) -> Iterator[Line]:
    """Lines of one to four words in many sizes and colours, every second one turned around."""
    rng = np.random.default_rng(seed)
    for index in range(count):
        text, font = _write(rng, 1, 4), ImageFont.load_default(int(rng.integers(18, 60)))
        left, top, right, bottom = map(int, font.getbbox(text))
        sides = (*rng.integers(4, 12, 2), *rng.integers(3, 10, 2))
        size = (right - left + int(sum(sides[:2])), bottom - top + int(sum(sides[2:])))
        image = Image.new("RGB", size, _colour(rng, 190, 256))
        ImageDraw.Draw(image).text((sides[0] - left, sides[2] - top), text, _colour(rng, 0, 90), font)
        yield Line(image.rotate(180) if index % 2 else image, bool(index % 2))


def draw_pages(count: int, *, seed: int = 0, size: tuple[int, int] = PAGE) -> Iterator[Page]:
    """Pages with a line of text in most rows, never two in one."""
    rng = np.random.default_rng(seed)
    height, width = size
    for _ in range(count):
        image = Image.new("RGB", (width, height), _colour(rng, 200, 256))
        pen, boxes, row = ImageDraw.Draw(image), [], 12
        while row < height - 40:
            font = ImageFont.load_default(int(rng.integers(14, 30)))
            place = (int(rng.integers(8, width // 3)), row)
            text = _fit(_write(rng, 1, 3), font, width - place[0] - 8)
            pen.text(place, text, _colour(rng, 0, 90), font)
            boxes.append(tuple(map(int, pen.textbbox(place, text, font))))
            row = boxes[-1][3] + int(rng.integers(12, 50))
        yield Page(image, tuple(boxes))


def _write(rng: np.random.Generator, least: int, most: int) -> str:
    return " ".join(rng.choice(WORDS, int(rng.integers(least, most + 1))))


def _fit(text: str, font: Any, width: int) -> str:
    while font.getlength(text) > width and " " in text:
        text = text.rpartition(" ")[0]
    return text


def _colour(rng: np.random.Generator, least: int, most: int) -> tuple[int, int, int]:
    red, green, blue = map(int, rng.integers(least, most, 3))
    return red, green, blue


def prepare_line(line: Line) -> np.ndarray:
    """float32[3, 48, 192], as the example (and rapidocr) prepares an image for the orientation classifier."""
    prepared: np.ndarray = load_example("text_orientation").prepare_image(_read_blue_first(line.image))
    return prepared


def prepare_page(page: Page) -> np.ndarray:
    """float32[3, height, width] from -1 to 1, blue first; the page keeps its size, whose sides are multiples of 32."""
    return ((_read_blue_first(page.image).transpose(2, 0, 1) / 255 - 0.5) / 0.5).astype(np.float32)


def _read_blue_first(image: Image.Image) -> np.ndarray:
    return np.asarray(image)[:, :, ::-1]


def write_line_samples(folder: Path, count: int, *, seed: int = 0) -> Path:
    """One .npz a line, prepared for the orientation classifier."""
    return write_arrays(folder, (prepare_line(line) for line in draw_lines(count, seed=seed)))


def write_page_samples(folder: Path, count: int, *, seed: int = 0, size: tuple[int, int] = PAGE) -> Path:
    """One .npz a page, prepared for the detector."""
    return write_arrays(folder, (prepare_page(page) for page in draw_pages(count, seed=seed, size=size)))


def write_arrays(folder: Path, arrays: Iterator[np.ndarray], name: str = "x") -> Path:
    """One .npz a value, with the leading axis of a batch of one."""
    folder.mkdir(parents=True, exist_ok=True)
    for index, array in enumerate(arrays):
        np.savez(folder / f"{index:04d}.npz", **{name: array[None]})
    return folder


def write_line_images(folder: Path, count: int, *, seed: int = 0) -> Path:
    """One PNG a line: `0000-0.png` stands upright, `0001-180.png` upside down."""
    folder.mkdir(parents=True, exist_ok=True)
    for index, line in enumerate(draw_lines(count, seed=seed)):
        line.image.save(folder / f"{index:04d}-{180 * line.turned}.png")
    return folder


def measure_orientation(model: Path, count: int = 100, *, seed: int = 1000) -> float:
    """The share of `count` lines whose turn the model tells rightly, by plain ONNX Runtime on the CPU."""
    lines = list(draw_lines(count, seed=seed))
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    answers = [session.run(None, {"x": prepare_line(line)[None]})[0].argmax() == line.turned for line in lines]
    return float(np.mean(answers))


def measure_detection(model: Path, count: int = 10, *, seed: int = 1000) -> float:
    """The share of the lines on `count` pages of which the model marks at least half the core, on the CPU."""
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    found = []
    for page in draw_pages(count, seed=seed):
        marked = session.run(None, {"x": prepare_page(page)[None]})[0][0, 0] > THRESHOLD
        found += [marked[_find_core(box)].mean() >= 1 / 2 for box in page.boxes]
    return float(np.mean(found))


def _find_core(box: Box) -> tuple[slice, slice]:
    left, top, right, bottom = box
    width, height = right - left, bottom - top
    rim = round(width * height * SHRINKING / (2 * (width + height)))
    return slice(top + rim, bottom - rim), slice(left + rim, right - rim)
