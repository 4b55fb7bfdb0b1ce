"""Write features of real files: half of them to calibrate magika's model with, the others to judge it by.

    python write_samples.py FOLDER

FOLDER holds the model and what fetch_model.py put beside it, and in `files` what fetch_files.py fetched. It gets two
folders more, `calibration` and `held-out`, with one .npz a file, as `bundler build --calibration … --samples …` takes
them. Its name says what the file holds and at which place of the model's answer that label
stands: `python-153-004.npz`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from classify import load_settings, read_features

KINDS = {
    ".py": "python",
    ".js": "javascript",
    ".ts": "typescript",
    ".css": "css",
    ".po": "po",
    ".rst": "rst",
    ".sty": "latex",
    ".toml": "toml",
    ".png": "png",
}
"""Suffixes, and the label that the model has for what such a file holds."""
MOST_OF_A_KIND = 40
LEAST_BYTES = 200
"""Shorter files do not say what they are."""


def find_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The label and path of each file below `folder`, at most `MOST_OF_A_KIND` of one label from all of it, in an order
    that never changes.
    """
    for suffix, label in KINDS.items():
        paths = sorted(path for path in folder.rglob(f"*{suffix}") if path.stat().st_size >= LEAST_BYTES)
        step = max(1, len(paths) // MOST_OF_A_KIND)
        yield from ((label, path) for path in paths[::step][:MOST_OF_A_KIND])


def write_samples(folder: Path) -> dict[str, int]:
    """Files of every kind in turns to the two folders; how many each got."""
    settings = load_settings(folder)
    labels = settings.config["target_labels_space"]
    written = {"calibration": 0, "held-out": 0}
    for part in written:
        shutil.rmtree(folder / part, ignore_errors=True)
        (folder / part).mkdir()
    seen = dict.fromkeys(KINDS.values(), 0)
    for label, path in find_files(folder / "files"):
        part = "held-out" if seen[label] % 2 else "calibration"
        name = f"{label}-{labels.index(label)}-{seen[label] // 2:03d}.npz"
        np.savez(folder / part / name, bytes=read_features(path, settings)[None])
        seen[label] += 1
        written[part] += 1
    return written


def main() -> int:
    parser = argparse.ArgumentParser(description="Write features of files: to calibrate with, and to judge by.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the model is")
    options = parser.parse_args()
    for part, count in write_samples(options.folder).items():
        print(f"{options.folder / part}: features of {count} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
