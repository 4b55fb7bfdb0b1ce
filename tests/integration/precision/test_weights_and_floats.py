"""Weight-only quantisation in its locked environment, and 16-bit floats, on trained networks with real data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from bundler.environments.registry import Environments
from bundler.stages.quantize_weights.spec import ENVIRONMENT
from tests.support import models
from tests.support.bundles import cache_root
from tests.support.digits import load_digits, make_network
from tests.support.encoders import encoder, sentences
from tests.support.environment_stages import StageRunner
from tests.support.sample_sets import write_samples
from tests.support.stage_calls import call_stage

HALF = {"default": {"sqnr_db": 40.0}}


@pytest.fixture
def run(shared: Path, tmp_path: Path) -> StageRunner:
    return StageRunner(Environments(cache_root(shared / "cache")), tmp_path / "runs")


def answers(model: Path, feeds: dict[str, np.ndarray]) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    result: np.ndarray = session.run(None, feeds)[0]
    return result


def accuracy(model: Path) -> float:
    """The share of held-out digits that the convolutional network recognises."""
    _, held_out = load_digits()
    best = answers(model, held_out.feed("convolutional")).argmax(axis=1)
    return float((best == held_out.labels).mean())


def sqnr(expected: np.ndarray, actual: np.ndarray) -> float:
    return float(10 * np.log10(np.square(expected).sum() / np.square(expected - actual).sum()))


def make_encoder(folder: Path) -> tuple[Path, dict[str, np.ndarray], Path]:
    """A BERT-class encoder, one batch for it, and a set of four others."""
    path = models.save(encoder(width=128, hidden=256, vocabulary=200), folder)
    feeds = [sentences(2, 12, vocabulary=200, seed=seed) for seed in range(5)]
    names = {item.name for item in onnxruntime.InferenceSession(str(path)).get_inputs()}
    fitting = [{name: value for name, value in feed.items() if name in names} for feed in feeds]
    return path, fitting[0], write_samples(folder / "samples", path, fitting[1:])


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({}, 10),
        pytest.param({"symmetric": True}, 10, marks=pytest.mark.slow),
        pytest.param({"bits": 8}, 35, marks=pytest.mark.slow),
        ({"algorithm": "hqq"}, 10),
        pytest.param({"algorithm": "gptq"}, 10, marks=pytest.mark.slow),
        pytest.param({"accuracy_level": 4}, 10, marks=pytest.mark.slow),
    ],
    ids=["rtn", "symmetric", "eight-bits", "hqq", "gptq", "int8-arithmetic"],
)
def test_an_encoder_in_the_locked_environment(
    tmp_path: Path, run: StageRunner, options: dict[str, Any], least: float
) -> None:
    model, feeds, samples = make_encoder(tmp_path / "model")
    outcome = run("quantize_weights", ENVIRONMENT, {"model": model, "samples": samples}, **options)
    assert outcome.facts["quantized"]["MatMul"] == 12
    assert outcome.facts["weight_bytes_after"] < outcome.facts["weight_bytes_before"] * 0.36
    assert sqnr(answers(model, feeds), answers(outcome.path, feeds)) > least
    again = call_stage("quantize_weights", tmp_path / "here", {"model": model, "samples": samples}, **options)
    assert (tmp_path / "here" / "model.onnx").read_bytes() == outcome.path.read_bytes()
    assert again.facts == outcome.facts


def test_a_trained_network_keeps_its_accuracy_in_half_precision(tmp_path: Path) -> None:
    train, _ = load_digits()
    path = models.save(make_network("convolutional"), tmp_path)
    samples = write_samples(tmp_path / "samples", path, [train.part(64).feed("convolutional")])
    result = call_stage("convert_float", tmp_path / "out", {"model": path, "samples": samples}, search=True, gate=HALF)
    before, after = accuracy(path), accuracy(tmp_path / "out" / "model.onnx")
    assert before > 0.9
    assert abs(before - after) <= 1 / 360
    assert result.facts["search"]["figures"]["scores"]["sqnr_db"] >= 40
    assert result.facts["weight_bytes_after"] * 2 == result.facts["weight_bytes_before"]


@pytest.mark.parametrize("level", ["basic", "extended"])
def test_half_precision_survives_baking(tmp_path: Path, level: str) -> None:
    """Folding turns no half-precision weight back: what is saved on disk stays saved."""
    model, feeds, _ = make_encoder(tmp_path / "model")
    call_stage("convert_float", tmp_path / "half", {"model": model})
    half = tmp_path / "half" / "model.onnx"
    call_stage("optimize", tmp_path / "baked", {"model": half}, level=level)
    baked = tmp_path / "baked" / "model.onnx"
    assert baked.stat().st_size < 1.1 * half.stat().st_size < 0.6 * model.stat().st_size
    assert sqnr(answers(model, feeds), answers(baked, feeds)) > 40


def test_narrow_weights_survive_baking_where_constants_are_not_folded(tmp_path: Path) -> None:
    model, feeds, _ = make_encoder(tmp_path / "model")
    call_stage("convert_float", tmp_path / "half", {"model": model}, type="bfloat16", scope="weights")
    half = tmp_path / "half" / "model.onnx"
    sizes = {}
    for name, disabled in (("folded", ()), ("kept", ("ConstantFolding",))):
        call_stage("optimize", tmp_path / name, {"model": half}, disabled_optimizers=disabled)
        sizes[name] = (tmp_path / name / "model.onnx").stat().st_size
    assert sizes["kept"] < 0.6 * sizes["folded"]
    assert sqnr(answers(model, feeds), answers(tmp_path / "kept" / "model.onnx", feeds)) > 30


@pytest.mark.slow
def test_a_search_in_an_encoder_meets_a_gate_that_plain_conversion_misses(tmp_path: Path) -> None:
    model, _, samples = make_encoder(tmp_path / "model")
    inputs = {"model": model, "samples": samples}
    plain = call_stage("convert_float", tmp_path / "plain", inputs)
    reached = plain.facts["figures"]["last_hidden_state"]["sqnr_db"]
    gate = {"default": {"sqnr_db": reached + 3}}
    result = call_stage("convert_float", tmp_path / "mixed", inputs, search=True, gate=gate)
    assert result.facts["search"]["figures"]["last_hidden_state"]["sqnr_db"] >= reached + 3
    assert 0 < len(result.facts["kept"]) < result.facts["search"]["nodes"]
    assert result.facts["weight_bytes_after"] < result.facts["weight_bytes_before"]
    assert result.facts["search"]["rounds"] <= 41
