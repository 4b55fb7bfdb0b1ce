"""The models of rapidocr that find lines of text on a page and read them, and what they answer."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import onnxruntime as ort
from PIL import Image

from bundler.execution.locks import hold
from tests.support.real_models import EXAMPLES
from tests.support.text_images import THRESHOLD, Box, Line, draw_lines

REQUIREMENT = "rapidocr-onnxruntime==1.4.4"
DIGESTS = {
    "det": "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
    "rec": "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
}
HEIGHT = 48
"""Pixels of a line that the recogniser reads; its width follows the line's shape."""
LEAST_PIXELS = 12
"""Smaller marks are no boxes."""


def fetch_text_models(folder: Path) -> dict[str, Path]:
    """`det` and `rec`, once for all processes of the session."""
    folder.mkdir(parents=True, exist_ok=True)
    models = {name: folder / f"{name}.onnx" for name in DIGESTS}
    package = _load_package_files()
    files = [
        package.PackageFile(
            source=f"rapidocr_onnxruntime/models/ch_PP-OCRv4_{name}_infer.onnx",
            destination=path,
            sha256=DIGESTS[name],
        )
        for name, path in models.items()
    ]
    with hold(folder / "fetch.lock"):
        package.fetch_files(REQUIREMENT, files, python_version="3.12")
    return models


def _load_package_files() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_package_files", EXAMPLES / "package_files.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their own module up
    spec.loader.exec_module(module)
    return module


def draw_upright(count: int, *, seed: int = 0) -> Iterator[Line]:
    """Lines that stand upright."""
    return (line for line in draw_lines(2 * count, seed=seed) if not line.turned)


def prepare_reading(line: Line) -> np.ndarray:
    """float32[1, 3, 48, width] from -1 to 1, blue first, as rapidocr prepares a line for the recogniser."""
    width = max(8, round(line.image.width * HEIGHT / line.image.height))
    image = np.asarray(line.image.resize((width, HEIGHT), Image.Resampling.BILINEAR))[:, :, ::-1]
    return ((image.transpose(2, 0, 1)[None] / 255 - 0.5) / 0.5).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Reader:
    """The recogniser in plain ONNX Runtime, with the characters that the original model's file names."""

    session: ort.InferenceSession
    characters: tuple[str, ...]

    def read(self, image: np.ndarray) -> str:
        """The text of a prepared line: of equal neighbours one, and nothing for the class of no character.

        A space at an end of the line is paper; the original model itself sees some there and some not.
        """
        best = self.session.run(None, {"x": image})[0][0].argmax(axis=1)
        return "".join(self.characters[index] for index, _ in groupby(best) if index).strip()


def open_reader(model: Path, original: Path) -> Reader:
    """`original` holds the characters."""
    properties = {item.key: item.value for item in onnx.load(original).metadata_props}
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return Reader(session, ("", *properties["character"].split("\n"), " "))


def find_boxes(session: ort.InferenceSession, page: np.ndarray) -> list[Box]:
    """Left, top, right and bottom of every connected mark on a prepared page of shape [3, height, width]."""
    marked = session.run(None, {"x": page[None]})[0][0, 0] > THRESHOLD
    left = set(map(tuple, np.argwhere(marked).tolist()))
    boxes = []
    while left:
        pixels = np.array(_take_connected(left))
        if len(pixels) >= LEAST_PIXELS:
            (top, start), (bottom, end) = pixels.min(axis=0), pixels.max(axis=0)
            boxes.append((int(start), int(top), int(end) + 1, int(bottom) + 1))
    return sorted(boxes)


def _take_connected(left: set[tuple[int, ...]]) -> list[tuple[int, ...]]:
    waiting = [left.pop()]
    taken = []
    while waiting:
        row, column = waiting.pop()
        taken.append((row, column))
        for place in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
            if place in left:
                left.remove(place)
                waiting.append(place)
    return taken


def overlap(one: Box, other: Box) -> float:
    """The area that both have by the area that either has."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(0, width) * max(0, height)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return shared / (sum(areas) - shared)


def count_found(boxes: Sequence[Box], others: Sequence[Box], least: float) -> int:
    """How many of `boxes` have one among `others` that overlaps it by `least`."""
    return sum(any(overlap(box, other) >= least for other in others) for box in boxes)
