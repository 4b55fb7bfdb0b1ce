"""Tell what kind of content files hold, with nothing but a bundle of magika's model, NumPy and ONNX Runtime.

    python classify.py BUNDLE FILE… [--config FOLDER]

BUNDLE is a folder that `bundler build` made. FOLDER holds the two JSON files that fetch_model.py put beside the model;
without the option it is the folder that holds the bundle.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a file holds, and the model's score for it (1.0 where the model was not needed)."""

    label: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the model was trained with, and which labels are text."""

    config: Mapping[str, Any]
    types: Mapping[str, Mapping[str, Any]]


def load_model(bundle: Path) -> Any:
    """The bundle's model. In a project of your own, install the bundle and import its package by name."""
    package = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["package"]
    sys.path.insert(0, str(bundle.resolve()))
    sys.dont_write_bytecode = True  # the bundle stays as its manifest lists it
    return importlib.import_module(package).Model()


def load_settings(folder: Path) -> Settings:
    config, types = (
        json.loads((folder / name).read_text(encoding="utf-8"))
        for name in ("config.min.json", "content_types_kb.min.json")
    )
    if config["mid_size"] or config["use_inputs_at_offsets"]:
        raise ValueError("this model reads other parts of a file than its beginning and end")
    return Settings(config=config, types=types)


def read_features(path: Path, settings: Settings) -> np.ndarray[Any, Any]:
    """int32[beg_size + end_size]: the first and the last bytes of a file without the white space around it.

    Where the file is shorter, the padding token (no byte has its value) fills the end of the first part and the
    beginning of the second.
    """
    beginning_size, end_size = settings.config["beg_size"], settings.config["end_size"]
    beginning, end = read_ends(path, settings.config["block_size"])
    features = np.full(beginning_size + end_size, settings.config["padding_token"], np.int32)
    first, last = beginning.lstrip()[:beginning_size], end.rstrip()[-end_size:]
    features[: len(first)] = np.frombuffer(first, np.uint8)
    features[len(features) - len(last) :] = np.frombuffer(last, np.uint8)
    return features


def read_ends(path: Path, block: int) -> tuple[bytes, bytes]:
    """The first and the last `block` bytes of a file."""
    with path.open("rb") as stream:
        first = stream.read(block)
        size = stream.seek(0, 2)
        stream.seek(max(0, size - block))
        return first, stream.read(block)


def classify(model: Any, settings: Settings, paths: list[Path]) -> list[Answer]:
    """An answer for each file, the model run once for all that need it."""
    answers = [answer_without_model(path, settings) for path in paths]
    asked = [index for index, answer in enumerate(answers) if answer is None]
    if asked:
        features = np.stack([read_features(paths[index], settings) for index in asked])
        scores = model.run(bytes=features).target_label
        for index, row in zip(asked, scores, strict=True):
            answers[index] = choose_label(row, settings)
    return [answer for answer in answers if answer is not None]


def answer_without_model(path: Path, settings: Settings) -> Answer | None:
    """Empty files and those with too few bytes for the model have an answer of their own."""
    if path.stat().st_size == 0:
        return Answer(label="empty", score=1.0)
    first, _ = read_ends(path, settings.config["block_size"])
    if len(first.lstrip()) >= settings.config["min_file_size_for_dl"]:
        return None
    try:
        first.decode("utf-8")
    except UnicodeDecodeError:
        return Answer(label="unknown", score=1.0)
    return Answer(label="txt", score=1.0)


def choose_label(scores: np.ndarray[Any, Any], settings: Settings) -> Answer:
    """The label of the highest score; a general one when the score is below the label's threshold."""
    config = settings.config
    place = int(np.argmax(scores))
    score, raw = float(scores[place]), config["target_labels_space"][place]
    label = config["overwrite_map"].get(raw, raw)
    if score < config["thresholds"].get(raw, config["medium_confidence_threshold"]):
        label = "txt" if settings.types[label]["is_text"] else "unknown"
    return Answer(label=label, score=score)


def main() -> int:
    parser = argparse.ArgumentParser(description="Tell what kind of content files hold.")
    parser.add_argument("bundle", type=Path, metavar="BUNDLE")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--config", type=Path, metavar="FOLDER", help="where fetch_model.py put its JSON files")
    options = parser.parse_args()
    settings = load_settings(options.config or options.bundle.resolve().parent)
    answers = classify(load_model(options.bundle), settings, options.files)
    for path, answer in zip(options.files, answers, strict=True):
        description = settings.types.get(answer.label, {}).get("description", "")
        print(f"{path}: {answer.label} {answer.score:.4f}  {description}".rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
