"""Draw pages with lines of text to try the pipeline on.

python draw_pages.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

PAGES = {
    "letter": ["Dear reader,", "this page was drawn by a program.", "Each line of it is read again.", "Yours, 2026"],
    "receipt": ["COFFEE 2.40", "TEA 1.90", "CAKE 3.75", "TOTAL 8.05"],
    "notes": ["Turn left at the station", "Room 117, second floor", "Ask for the manager", "Bring the blue folder"],
}
TURNED = "Read me upside down"


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python draw_pages.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, lines) in enumerate(PAGES.items()):
        draw_page(lines, 40 + 8 * number).save(folder / f"{name}.png")
    return 0


def draw_page(lines: list[str], size: int) -> Image.Image:
    """The lines below each other, and one that stands upside down at the end."""
    font = ImageFont.load_default(size)
    page = Image.new("RGB", (26 * size, 2 * size * (len(lines) + 2)), (248, 246, 240))
    pen = ImageDraw.Draw(page)
    for row, text in enumerate(lines):
        pen.text((size, size + 2 * size * row), text, (30, 30, 60), font)
    left, top, right, bottom = map(int, font.getbbox(TURNED))
    strip = Image.new("RGB", (right - left + 8, bottom - top + 8), (248, 246, 240))
    ImageDraw.Draw(strip).text((4 - left, 4 - top), TURNED, (30, 30, 60), font)
    page.paste(strip.rotate(180), (size, size + 2 * size * len(lines)))
    return page


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
