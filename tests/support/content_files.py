"""Real files of many kinds, for magika's model: `bytes`[batch, 2048] -> `target_label`[batch, labels].

They are taken from this repository and from the packages of the environment, so nothing is fetched.
"""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime as ort

from tests.support.command_line import ROOT
from tests.support.real_models import load_example

KINDS: Final = {
    ".py": "python",
    ".md": "markdown",
    ".js": "javascript",
    ".css": "css",
    ".toml": "toml",
    ".json": "json",
    ".html": "html",
    ".h": "c",
    ".c": "c",
    ".csv": "csv",
    ".png": "png",
    ".rst": "rst",
    ".so": "elf",
    ".pyc": "pythonbytecode",
}
"""Suffixes of files, and the label that the model has for what they hold."""
LEAST_BYTES: Final = 200


def list_files(each: int = 20) -> list[tuple[Path, str]]:
    """At most `each` files of each kind with their label, kind by kind in turns, so that any part holds all kinds."""
    folders = (ROOT / "bundler", ROOT / "docs", ROOT / "templates", Path(sysconfig.get_paths()["purelib"]))
    found: dict[str, list[Path]] = {suffix: [] for suffix in KINDS}
    for path in (path for folder in folders for path in sorted(folder.rglob("*"))):
        wanted = found.get(path.suffix)
        if wanted is not None and len(wanted) < each and path.is_file() and path.stat().st_size >= LEAST_BYTES:
            wanted.append(path)
    rows = (paths[turn] for turn in range(each) for paths in found.values() if turn < len(paths))
    return [(path, KINDS[path.suffix]) for path in rows]


def read_features(paths: list[Path], model: Path) -> Iterator[np.ndarray]:
    """int32[2048] for each file, by the settings that stand beside the model."""
    example = load_example("content_type")
    settings = example.load_settings(model.parent)
    return (example.read_features(path, settings) for path in paths)


def write_content_samples(folder: Path, model: Path, count: int, *, skip: int = 0) -> Path:
    """One .npz a file, for files number `skip` to `skip + count`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [path for path, _ in list_files()]
    for index, features in enumerate(islice(read_features(paths, model), skip, skip + count)):
        np.savez(folder / f"{index:04d}.npz", bytes=features[None])
    return folder


def measure_content_types(model: Path, original: Path, count: int = 100) -> float:
    """The share of the last `count` files that `model` labels rightly; `original` has the settings beside it."""
    files = list_files()[-count:]
    labels = json.loads((original.parent / "config.min.json").read_text(encoding="utf-8"))["target_labels_space"]
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    features = read_features([path for path, _ in files], original)
    answers = (labels[int(session.run(None, {"bytes": row[None]})[0].argmax())] for row in features)
    return float(np.mean([answer == label for answer, (_, label) in zip(answers, files, strict=True)]))
