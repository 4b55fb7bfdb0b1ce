"""Make samples of each model from pages: what it is given while the original models read them.

python make_samples.py PAGES FOLDER

FOLDER gets a folder of `.npz` files for each model. Samples travel in the bundle, so they are kept small: parts of what
the detector sees, from the top left on, and a line or two at once for the others.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
from pipeline import run

HERE = Path(__file__).parent
PARTS = {
    "detect": [np.s_[:, :, :height, :width] for height, width in ((192, 640), (160, 320), (320, 320))],
    "classify": [np.s_[:1], np.s_[1:3], np.s_[3:]],
    "read": [np.s_[:1], np.s_[1:3], np.s_[3:4]],
}
"""The parts of a call's input that become samples, by model."""


class Recorder:
    """An original model that keeps what it is given."""

    def __init__(self, model: Path) -> None:
        self.session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        self.inputs: list[np.ndarray[Any, Any]] = []

    def run(self, x: np.ndarray[Any, Any]) -> list[Any]:
        """All outputs for `x`, which is kept."""
        self.inputs.append(x)
        return list(self.session.run(None, {"x": x}))


def main(arguments: list[str]) -> int:
    try:
        pages, folder = map(Path, arguments)
    except ValueError:
        print("usage: python make_samples.py PAGES FOLDER", file=sys.stderr)
        return 2
    for page in sorted(pages.glob("*.png")):
        models = {name: Recorder(HERE / f"{name}.onnx") for name in PARTS}
        run(SimpleNamespace(**models), page)
        for name, model in models.items():
            (folder / name).mkdir(parents=True, exist_ok=True)
            (given,) = model.inputs  # a page has fewer lines than one call takes
            for number, part in enumerate(PARTS[name]):
                np.savez(folder / name / f"{page.stem}-{number}.npz", x=given[part])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
