"""Draw lines of text, half of them upside down, and write them as the model takes them: for calibration.

    python write_samples.py FOLDER

FOLDER gets one .npz a line, as `bundler build --calibration FOLDER` takes them: bundler keeps every fifth apart, to
judge by. Its name says how the line stands: `0003-180.npz`. Everything follows from a seed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from classify import prepare_image
from PIL import Image, ImageDraw, ImageFont

WORDS = (
    *("open", "Emergency", "exit", "please", "Turn", "the", "page", "around", "invoice", "2026-11-20", "14:35"),
    *("Total", "12.50", "station", "Platform", "7b", "closed", "until", "further", "notice", "kitchen", "No.", "4711"),
)


def draw_line(rng: np.random.Generator) -> Image.Image:
    """One to four words, dark on light, in a size and colours of their own."""
    text = " ".join(rng.choice(WORDS, int(rng.integers(1, 5))))
    font = ImageFont.load_default(int(rng.integers(18, 60)))
    left, top, right, bottom = map(int, font.getbbox(text))
    image = Image.new("RGB", (right - left + 14, bottom - top + 12), choose_colour(rng, 190, 256))
    ImageDraw.Draw(image).text((7 - left, 6 - top), text, choose_colour(rng, 0, 90), font)
    return image


def choose_colour(rng: np.random.Generator, least: int, most: int) -> tuple[int, int, int]:
    red, green, blue = map(int, rng.integers(least, most, 3))
    return red, green, blue


def prepare_line(line: Image.Image) -> np.ndarray[Any, Any]:
    """float32[1, 3, 48, 192], blue first, as `classify.py` prepares a picture."""
    return prepare_image(np.asarray(line)[:, :, ::-1])[None]


def write_samples(folder: Path, count: int) -> None:
    """`count` lines to a fresh `folder`, every second one turned around."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for index in range(count):
        turn = 180 * (index % 2)
        np.savez(folder / f"{index:04d}-{turn}.npz", x=prepare_line(draw_line(rng).rotate(turn)))


def main() -> int:
    parser = argparse.ArgumentParser(description="Write lines of text: to calibrate with, and to judge by.")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--count", type=int, default=40, metavar="N", help="lines to draw [40]")
    options = parser.parse_args()
    write_samples(options.folder, options.count)
    print(f"{options.folder}: {options.count} lines of text")
    return 0


if __name__ == "__main__":
    sys.exit(main())
