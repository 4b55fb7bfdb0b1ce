"""NNCF runs in its locked environment; the result is what NNCF makes by hand, and ONNX Runtime's CPU runs it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from bundler.environments.lockfiles import shipped_lock
from bundler.environments.registry import Environments
from bundler.model.errors import StageError, UsageError
from bundler.model.results import StepOutcome
from tests.support import digits, models
from tests.support.bundles import cache_root
from tests.support.environment_stages import StageRunner
from tests.support.real_models import fetch_example
from tests.support.sample_sets import write_samples
from tests.support.text_images import draw_lines, measure_orientation, prepare_line

pytestmark = pytest.mark.slow

BY_HAND = """
import os, pathlib, sys
os.environ["NNCF_CI"] = "1"
sys.modules["openvino_telemetry"] = None
import nncf, numpy, onnx, onnxruntime
source, folder, target, preset, transformer, count = sys.argv[1:]
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
options.optimized_model_filepath = target + ".basic"
onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
model = onnx.load(target + ".basic")
used = {node.domain for node in model.graph.node} | {""}
kept = sorted((opset for opset in model.opset_import if opset.domain in used), key=lambda opset: opset.domain)
del model.opset_import[:]
model.opset_import.extend(kept)
samples = [dict(numpy.load(path)) for path in sorted(pathlib.Path(folder).glob("*.npz"))]
quantized = nncf.quantize(
    model, nncf.Dataset(samples), subset_size=int(count),
    preset=nncf.QuantizationPreset(preset) if preset else None,
    model_type=nncf.ModelType.TRANSFORMER if transformer else None,
)
pathlib.Path(target).write_bytes(quantized.SerializeToString(deterministic=True))
"""
COUNT = 24


@pytest.fixture
def run(shared: Path, tmp_path: Path) -> StageRunner:
    return StageRunner(Environments(cache_root(shared / "cache")), tmp_path / "runs")


def feeds(network: digits.Network, images: digits.Digits) -> Iterator[Mapping[str, np.ndarray]]:
    for index in range(len(images)):
        yield {name: values[index : index + 1] for name, values in images.feed(network).items()}


def quantize(run: StageRunner, folder: Path, network: digits.Network, **options: object) -> StepOutcome:
    model = digits.write_network(network, folder / "model")
    samples = write_samples(folder / "samples", model, feeds(network, digits.load_digits()[0].part(COUNT)))
    return run("quantize_nncf", "nncf", {"model": model, "samples": samples}, **options)


def test_the_lock_holds_neither_torch_nor_openvino() -> None:
    lock = shipped_lock("nncf")
    assert lock is not None
    assert {"torch", "openvino"}.isdisjoint(lock.versions())
    assert "nncf" in lock.versions()


def test_digits_are_read_as_well_as_before(tmp_path: Path, run: StageRunner) -> None:
    outcome = quantize(run, tmp_path, "convolutional")
    before = digits.measure_accuracy(tmp_path / "model" / "digits-convolutional.onnx", "convolutional")
    after = digits.measure_accuracy(outcome.path, "convolutional")
    assert after >= before - 0.01
    assert outcome.facts["samples"] == COUNT
    assert outcome.facts["quantized"]["Conv"] == 2
    assert outcome.facts["bytes"] < (tmp_path / "model" / "digits-convolutional.onnx").stat().st_size / 2


@pytest.mark.parametrize(
    ("network", "options", "arguments"),
    [
        ("convolutional", {}, ("", "")),
        ("convolutional", {"preset": "mixed"}, ("mixed", "")),
        ("perceptron", {"preset": "performance", "model_type": "transformer"}, ("performance", "1")),
    ],
)
def test_equal_options_give_the_bytes_that_nncf_gives_by_hand(
    tmp_path: Path, run: StageRunner, network: digits.Network, options: dict[str, str], arguments: tuple[str, str]
) -> None:
    outcome = quantize(run, tmp_path, network, **options)
    arrays = digits.write_samples(digits.load_digits()[0].part(COUNT), tmp_path / "arrays", network)
    paths = [tmp_path / "model" / f"digits-{network}.onnx", arrays, tmp_path / "by-hand.onnx"]
    python = run.environments.resolve("nncf").python
    done = subprocess.run(
        [str(python), "-c", BY_HAND, *map(str, paths), *arguments, str(COUNT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "by-hand.onnx").read_bytes() == outcome.path.read_bytes()


def test_two_runs_write_equal_bytes_whatever_the_seed_of_hashes(
    tmp_path: Path, run: StageRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        written.append(quantize(run, tmp_path / seed, "convolutional").path.read_bytes())
    assert written[0] == written[1]


def test_nothing_is_sent_and_nothing_is_written_into_the_home_folder(
    tmp_path: Path, run: StageRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NNCF would write an identifier for its telemetry there, with its own switch off too."""
    home = tmp_path / "home"
    home.mkdir()
    run.environments.resolve("nncf")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    quantize(run, tmp_path, "perceptron")
    assert not list(home.rglob("*"))


def test_a_trained_classifier_of_an_old_opset_is_raised_and_still_tells_up_from_down(
    tmp_path: Path, run: StageRunner, shared: Path
) -> None:
    model = fetch_example("text_orientation", shared / "text_orientation" / "orientation.onnx")
    lines = ({"x": prepare_line(line)[None]} for line in draw_lines(24))
    samples = write_samples(tmp_path / "samples", model, lines)
    outcome = run("quantize_nncf", "nncf", {"model": model, "samples": samples})
    assert outcome.facts["opset"] == 13
    assert "raised from opset 11 to 13" in outcome.notes[0].text
    assert measure_orientation(outcome.path, 40) >= measure_orientation(model, 40) - 0.05
    assert outcome.path.stat().st_size < model.stat().st_size


def test_excluded_nodes_and_operators_stay_float(tmp_path: Path, run: StageRunner) -> None:
    names = [node.name for node in digits.make_convolutional().graph.node]
    assert not any(names)  # unnamed: NNCF's own names serve
    outcome = quantize(run, tmp_path, "convolutional", exclude_nodes=["Conv_nncf_0"], exclude_operators=["Gemm"])
    assert outcome.facts["quantized"].get("Conv") == 1
    assert "Gemm" not in outcome.facts["quantized"]


def test_unknown_names_get_a_suggestion(tmp_path: Path, run: StageRunner) -> None:
    with pytest.raises(UsageError) as caught:
        quantize(run, tmp_path, "convolutional", exclude_nodes=["Conv_nncf_9"], exclude_operators=["Convv"])
    assert caught.value.details == (
        "no node 'Conv_nncf_9' (did you mean 'Conv_nncf_2'?)",
        "no operator 'Convv' (did you mean 'Conv'?)",
    )


def test_a_model_that_is_quantised_already_is_refused(tmp_path: Path, run: StageRunner) -> None:
    outcome = quantize(run, tmp_path, "perceptron")
    with pytest.raises(StageError, match="the model is quantised already"):
        run("quantize_nncf", "nncf", {"model": outcome.path, "samples": tmp_path / "samples" / "index.json"})


def test_a_model_with_nothing_to_quantise_is_refused(tmp_path: Path, run: StageRunner) -> None:
    model = models.save(models.identity(), tmp_path / "model")
    samples = write_samples(tmp_path / "samples", model, [{"x": np.zeros((2, 3), np.float32)}])
    with pytest.raises(StageError, match="nothing to quantise"):
        run("quantize_nncf", "nncf", {"model": model, "samples": samples})


def test_an_empty_set_is_refused(tmp_path: Path, run: StageRunner) -> None:
    model = models.save(models.cnn(), tmp_path / "model")
    samples = write_samples(tmp_path / "samples", model, [])
    with pytest.raises(UsageError, match="no samples to calibrate on"):
        run("quantize_nncf", "nncf", {"model": model, "samples": samples})


def test_samples_of_another_shape_are_an_error_in_the_runtimes_words(tmp_path: Path, run: StageRunner) -> None:
    model = models.save(models.cnn(), tmp_path / "model")
    samples = write_samples(tmp_path / "samples", model, [{"image": np.zeros((1, 3, 7, 7), np.float32)}])
    with pytest.raises(StageError, match="NNCF cannot quantise this model") as caught:
        run("quantize_nncf", "nncf", {"model": model, "samples": samples})
    assert "image" in caught.value.details[0]


def test_weights_in_a_file_of_their_own_are_quantised(tmp_path: Path, run: StageRunner) -> None:
    model = models.save_external(models.cnn(), tmp_path / "model")
    images = ({"image": models.weights(1, 3, 16, 16, seed=seed)} for seed in range(4))
    samples = write_samples(tmp_path / "samples", model, images)
    outcome = run("quantize_nncf", "nncf", {"model": model, "samples": samples})
    session = onnxruntime.InferenceSession(str(outcome.path))
    assert session.run(None, {"image": models.weights(1, 3, 16, 16)})[0].shape == (1, 5)


@pytest.mark.parametrize("make", [models.mlp, models.token_encoder, models.if_model, models.old_ir, models.overridable])
def test_other_models_are_quantised_or_refused_with_a_reason(tmp_path: Path, run: StageRunner, make) -> None:
    model = models.save(make(), tmp_path / "model")
    session = onnxruntime.InferenceSession(str(model))
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}
    values = {
        item.name: np.ones([size if isinstance(size, int) else 2 for size in item.shape], kinds[item.type])
        for item in session.get_inputs()
    }
    samples = write_samples(tmp_path / "samples", model, [values])
    try:
        outcome = run("quantize_nncf", "nncf", {"model": model, "samples": samples})
    except StageError as error:
        assert "stage quantize_nncf failed" not in error.message  # noqa: PT017 (a reason, not a defect)
    else:
        onnx.checker.check_model(str(outcome.path))
        assert onnxruntime.InferenceSession(str(outcome.path)).run(None, values)


def test_nncf_is_not_installed_beside_bundler() -> None:
    """What these tests prove would be nothing if NNCF came from here."""
    assert importlib.util.find_spec("nncf") is None
    assert "NNCF_CI" not in os.environ
