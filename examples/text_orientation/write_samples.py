"""Draw lines of text, half of them upside down, and write them as the model takes them: to calibrate, and to judge by.

    python write_samples.py FOLDER

FOLDER gets two folders, `calibration` and `held-out`, with one .npz a line, as `bundler build` takes them with
`--calibration` and `--samples`. Its name says how the line stands: `0003-180.npz`. Everything follows from two
seeds.

A model that is sure of every line shows nothing: its scores stay at 1.0 when its arithmetic gets worse. So these are
as lines come out of photographs: of one letter or many words, of many sizes, slanted, cut off, faint, blurred, noisy,
on a slope of light, and some read the same either way (`SWIMS`, `1961`).
"""

from __future__ import annotations

import argparse
import shutil
import string
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from classify import prepare_image
from PIL import Image, ImageDraw, ImageFilter, ImageFont

PARTS = {"calibration": 1, "held-out": 2}
"""The folders, and the seed that the lines of each follow from."""
WORDS = (
    *(
        "open",
        "Emergency",
        "exit",
        "please",
        "Turn",
        "the",
        "page",
        "around",
        "invoice",
        "Total",
        "station",
        "Platform",
    ),
    *("closed", "until", "further", "notice", "kitchen", "Fragile", "this", "side", "UP", "road", "works", "ahead"),
    *("library", "quiet", "Street", "baker", "fish", "and", "chips", "Monday", "departure", "gate", "window", "press"),
    *(
        "here",
        "Warning",
        "hot",
        "surface",
        "push",
        "pull",
        "ticket",
        "No.",
        "price",
        "per",
        "kilogram",
        "net",
        "weight",
    ),
    *("made", "in", "Best", "before", "see", "lid", "batch", "first", "floor", "parking", "reserved", "staff", "only"),
    *(
        "water",
        "electricity",
        "danger",
        "sale",
        "half",
        "off",
        "Rue",
        "de",
        "la",
        "Gare",
        "Bahnhof",
        "Ausgang",
        "salida",
    ),
)
AMBIGUOUS = ("SWIMS", "NOON", "1961", "8008", "oxo", "pod", "HOH", "SOS", "dollop", "69", "zzz", "MOW", "l", "- o -")
"""These read the same, or nearly so, when they are turned around."""


def draw_line(rng: np.random.Generator) -> Image.Image:
    """One line of text, upright, as a photograph may show it."""
    ink = slant(rng, draw_ink(rng, choose_text(rng)))
    return wear(rng, colour(rng, cut(rng, ink)))


def choose_text(rng: np.random.Generator) -> str:
    """Some words, codes and figures; one line of sixteen is ambiguous."""
    if rng.random() < 1 / 16:
        return str(rng.choice(AMBIGUOUS))
    return " ".join(choose_word(rng) for _ in range(int(rng.integers(1, 6))))


def choose_word(rng: np.random.Generator) -> str:
    kind = rng.random()
    if kind < 3 / 4:
        return str(rng.choice(WORDS))
    letters = string.digits + ".,:-/" if kind < 7 / 8 else string.ascii_letters
    return "".join(rng.choice(list(letters), int(rng.integers(1, 9))))


def draw_ink(rng: np.random.Generator, text: str) -> Image.Image:
    """How much ink is where: 0 to 255. Letters of any size and weight, and now and then much room to the right."""
    font = ImageFont.load_default(int(rng.integers(16, 60)))
    stroke = int(rng.integers(0, 1 + font.size // 16)) if rng.random() < 1 / 3 else 0
    left, top, right, bottom = map(int, font.getbbox(text, stroke_width=stroke))
    before, above, below = map(int, rng.integers(1, 14, 3))
    after = int(rng.integers(1, 14) if rng.random() < 3 / 4 else rng.integers(100, 300))
    ink = Image.new("L", (right - left + before + after, bottom - top + above + below))
    ImageDraw.Draw(ink).text((before - left, above - top), text, 255, font, stroke_width=stroke)
    return ink


def slant(rng: np.random.Generator, ink: Image.Image) -> Image.Image:
    """Turned by some degrees and leaning to one side."""
    turned = ink.rotate(float(rng.normal(0, 1.5)), Image.Resampling.BILINEAR, expand=True)
    lean = float(rng.normal(0, 0.12))
    shift = lean * turned.height / 2
    return turned.transform(turned.size, Image.Transform.AFFINE, (1, lean, -shift, 0, 1, 0), Image.Resampling.BILINEAR)


def cut(rng: np.random.Generator, ink: Image.Image) -> Image.Image:
    """One line of four is cut off somewhere, as a poor detector of lines does."""
    if rng.random() > 1 / 4:
        return ink
    sides = rng.uniform(0, (0.2, 0.25, 0.2, 0.25)) * (ink.width, ink.height, ink.width, ink.height)
    left, top, right, bottom = map(int, sides)
    return ink.crop((left, top, ink.width - right, ink.height - bottom))


def colour(rng: np.random.Generator, ink: Image.Image) -> np.ndarray[Any, Any]:
    """float[height, width, 3] from 0 to 255: mostly dark on light, some of it faint, on a slope of light."""
    dark, light = rng.uniform(0, 90, 3), rng.uniform(170, 255, 3)
    paper, drawn = (dark, light) if rng.random() < 1 / 5 else (light, dark)
    strength = rng.uniform(0.35, 1)
    share = np.asarray(ink, np.float64)[:, :, None] / 255 * strength
    slope = np.linspace(*rng.uniform(0.7, 1.1, 2), ink.width)[None, :, None]
    return (paper + (drawn - paper) * share) * slope


def wear(rng: np.random.Generator, pixels: np.ndarray[Any, Any]) -> Image.Image:
    """Blurred and noisy."""
    clean = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    blurred = clean.filter(ImageFilter.GaussianBlur(float(rng.uniform(0, 1) ** 2 * clean.height / 28)))
    noise = rng.normal(0, rng.uniform(0, 1) ** 3 * 30, (clean.height, clean.width, 1))
    return Image.fromarray(np.clip(np.asarray(blurred) + noise, 0, 255).astype(np.uint8))


def prepare_line(line: Image.Image) -> np.ndarray[Any, Any]:
    """float32[1, 3, 48, 192], blue first, as `classify.py` prepares a picture."""
    return prepare_image(np.asarray(line)[:, :, ::-1])[None]


def draw_lines(seed: int, count: int) -> Iterator[tuple[Image.Image, int]]:
    """`count` lines with the degrees by which they are turned around: every second one by 180."""
    rng = np.random.default_rng(seed)
    for index in range(count):
        turn = 180 * (index % 2)
        yield draw_line(rng).rotate(turn), turn


def write_samples(folder: Path, seed: int, count: int) -> None:
    """`count` lines to a fresh `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for index, (line, turn) in enumerate(draw_lines(seed, count)):
        np.savez(folder / f"{index:04d}-{turn}.npz", x=prepare_line(line))


def main() -> int:
    parser = argparse.ArgumentParser(description="Write lines of text: to calibrate with, and to judge by.")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--count", type=int, default=100, metavar="N", help="lines to draw for each of the two [100]")
    options = parser.parse_args()
    for part, seed in PARTS.items():
        write_samples(options.folder / part, seed, options.count)
        print(f"{options.folder / part}: {options.count} lines of text")
    return 0


if __name__ == "__main__":
    sys.exit(main())
