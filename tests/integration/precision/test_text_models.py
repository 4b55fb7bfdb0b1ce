"""A text detector and a recogniser in eight bits, by the product's own preset, find and read what they did before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnxruntime as ort
import pytest

from bundler.profiles.methods import METHODS
from tests.support.calibration import Feed, write_set
from tests.support.stage_calls import call_stage
from tests.support.text_images import draw_pages, prepare_page
from tests.support.text_models import (
    count_found,
    draw_upright,
    fetch_text_models,
    find_boxes,
    open_reader,
    prepare_reading,
)

HELD_OUT = 1000
"""The seed of what is judged; calibration sees that of 0."""


@pytest.fixture(scope="module")
def text_models(shared: Path) -> dict[str, Path]:
    return fetch_text_models(shared / "text_models")


def quantize(model: Path, feeds: list[Feed], folder: Path) -> tuple[Path, dict[str, Any]]:
    method = METHODS["static-int8"]
    inputs = {"model": model, "samples": write_set(model, feeds, folder / "samples")}
    facts = call_stage(method.stage, folder / "out", inputs, **method.options).facts
    quantized = folder / "out" / "model.onnx"
    assert quantized.stat().st_size < 0.5 * model.stat().st_size
    return quantized, dict(facts)


@pytest.mark.slow
def test_the_detector_finds_the_same_boxes(text_models: dict[str, Path], tmp_path: Path) -> None:
    feeds = [{"x": prepare_page(page)[None]} for page in draw_pages(12)]
    quantized, facts = quantize(text_models["det"], feeds, tmp_path)
    assert facts["preprocess"] == "plain"  # symbolic inference took 16 seconds, and changed nothing
    assert facts["quantized"]["Conv"] >= 20
    sessions = [ort.InferenceSession(str(path)) for path in (text_models["det"], quantized)]
    total = found = false = 0
    for page in draw_pages(8, seed=HELD_OUT):
        before, after = (find_boxes(session, prepare_page(page)) for session in sessions)
        total += len(before)
        found += count_found(before, after, 0.7)
        false += len(after) - count_found(after, before, 0.3)
    assert total >= 30
    assert found >= 0.95 * total
    assert false <= 0.05 * total


@pytest.mark.slow
def test_the_recogniser_reads_the_same_lines(text_models: dict[str, Path], tmp_path: Path) -> None:
    feeds = [{"x": prepare_reading(line)} for line in draw_upright(16)]
    quantized, facts = quantize(text_models["rec"], feeds, tmp_path)
    assert facts["quantized"]["MatMul"] >= 10
    readers = [open_reader(path, text_models["rec"]) for path in (text_models["rec"], quantized)]
    lines = [prepare_reading(line) for line in draw_upright(50, seed=HELD_OUT)]
    before, after = ([reader.read(line) for line in lines] for reader in readers)
    assert len(set(before)) >= 40
    same = sum(one == other for one, other in zip(before, after, strict=True))
    assert same >= 0.9 * len(lines)
