"""`precision.method = "auto"` on trained networks, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support import digits
from tests.support.command_line import ONE_PYTHON, CommandLine
from tests.support.documents import read_document

ORDER = 'precision.order=["dynamic-int8", "static-int8", "static-a16w8"]'


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained perceptron, images to calibrate with, and others that are held out."""
    folder = tmp_path_factory.mktemp("digits")
    digits.write_network("perceptron", folder)
    train, held_out = digits.load_digits()
    digits.write_samples(train.part(60), folder / "calibration", "perceptron")
    digits.write_samples(held_out.part(60), folder / "samples", "perceptron")
    return folder


def build(bundler: CommandLine, workplace: Path, output: Path, *more: str) -> Any:
    answer = bundler.run(
        "build",
        workplace / "digits-perceptron.onnx",
        "--target=linux-x64",
        f"--set={ONE_PYTHON}",
        "--set=precision.method=auto",
        f"--set={ORDER}",
        f"--calibration={workplace / 'calibration'}",
        f"--samples={workplace / 'samples'}",
        f"--output={output}",
        "--json",
        *more,
    )
    return answer.expect(0).document["bundles"][0]


def test_the_fastest_that_holds_the_gate_ships_and_all_that_was_tried_is_reported(
    bundler: CommandLine, workplace: Path, tmp_path: Path
) -> None:
    built = build(bundler, workplace, tmp_path)
    frontier = built["decisions"]["cpu"]["answer"]
    attempts = {attempt["method"]: attempt for attempt in frontier["attempts"]}
    assert list(attempts) == ["none", "dynamic-int8", "static-int8", "static-a16w8"]
    passed = [item for item in attempts.values() if item["state"] in ("passed", "chosen")]
    chosen = attempts[frontier["chosen"]]
    assert chosen["state"] == "chosen"
    assert chosen["ratio"] <= min(item["ratio"] for item in passed) * 1.03
    assert all(item["figures"]["sqnr_db"] is None or item["figures"]["sqnr_db"] >= 10 for item in passed)
    assert (frontier["timing"], frontier["held_out"], frontier["calibration"]) == ("measured", 60, 60)
    assert built["precisions"][0]["method"] == frontier["chosen"]
    page = Path(built["report"]).read_text(encoding="utf-8")
    assert all(method in page for method in attempts)
    manifest = read_document(Path(built["bundle"]) / "bundle.json")
    decision = next(item for item in manifest["decisions"] if item["subject"] == "precision of cpu")
    assert decision["choice"] == frontier["chosen"]

    again = build(bundler, workplace, tmp_path)
    assert again["up_to_date"]
    assert again["decisions"] == built["decisions"]


@pytest.mark.quick
def test_what_cannot_win_is_not_tried_and_the_screen_says_why(
    bundler: CommandLine, workplace: Path, tmp_path: Path
) -> None:
    answer = bundler.run(
        "build",
        workplace / "digits-perceptron.onnx",
        "--target=linux-x64",
        f"--set={ONE_PYTHON}",
        "--set=precision.method=auto",
        '--set=precision.order=["static-int8-mixed", "static-int8-percentile", "static-int8"]',
        f"--calibration={workplace / 'calibration'}",
        f"--samples={workplace / 'samples'}",
        f"--output={tmp_path}",
        "--no-prove",
        "--json",
    ).expect(0)
    built = answer.document["bundles"][0]
    frontier = built["decisions"]["cpu"]["answer"]
    attempts = {attempt["method"]: attempt for attempt in frontier["attempts"]}
    assert list(attempts) == ["none", "static-int8-mixed", "static-int8-percentile", "static-int8"]
    reason = "static-int8 meets the gate, and this method is at best as fast and as small"
    slower = attempts["static-int8"]["low"] > 1  # on this machine: more nodes in floating point may be faster
    for method in ("static-int8-percentile", *(() if slower else ("static-int8-mixed",))):
        assert (attempts[method]["state"], attempts[method]["reason"]) == ("skipped", reason)
        assert f"{method}: not tried: {reason}" in answer.err
    timed = attempts["static-int8"]
    assert timed["rounds"] >= 7
    assert timed["processor_ratio"] > 0
    assert (
        f"static-int8: gate met, {timed['model_bytes'] / 1e6:.1f} MB, {timed['ratio']:.2f} of the latency" in answer.err
    )
    assert f"precision of cpu: {frontier['chosen']}: {frontier['reason']}" in answer.err
    assert frontier["reason"] in Path(built["report"]).read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_gate_that_nothing_rounded_holds_leaves_the_model_as_it_is(
    bundler: CommandLine, workplace: Path, tmp_path: Path
) -> None:
    built = build(bundler, workplace, tmp_path, "--no-prove", "--set=accuracy.sqnr_db=90")
    frontier = built["decisions"]["cpu"]["answer"]
    assert frontier["chosen"] == "none"
    failed = [item for item in frontier["attempts"] if item["state"] == "failed"]
    assert failed
    assert all("SQNR" in item["reason"] for item in failed)


@pytest.mark.quick
def test_without_data_only_what_needs_none_is_tried(bundler: CommandLine, workplace: Path, tmp_path: Path) -> None:
    answer = bundler.run(
        "build",
        workplace / "digits-perceptron.onnx",
        "--target=linux-x64",
        f"--set={ONE_PYTHON}",
        "--set=precision.method=auto",
        f"--set={ORDER}",
        f"--output={tmp_path}",
        "--no-prove",
        "--json",
    ).expect(0)
    attempts = {
        item["method"]: item for item in answer.document["bundles"][0]["decisions"]["cpu"]["answer"]["attempts"]
    }
    assert attempts["static-int8"]["state"] == "skipped"
    assert "--calibration" in attempts["static-int8"]["reason"]
    assert attempts["dynamic-int8"]["state"] in ("passed", "failed", "chosen")


PROJECT = f"""
targets = ["linux-x64"]

[[models]]
path = "digits-perceptron.onnx"
samples = "samples"
calibration = "calibration"

[overrides."*".precision]
method = "auto"
order = ["dynamic-int8", "static-int8"]

[overrides."*".python]
{ONE_PYTHON.removeprefix("python.")}
"""


def test_a_choice_is_recorded_in_the_lock_and_repeated_from_there(
    bundler: CommandLine, cold: CommandLine, workplace: Path
) -> None:
    (workplace / "bundler.toml").write_text(PROJECT, encoding="utf-8")
    here = CommandLine(cache=bundler.cache, cwd=workplace)
    refused = here.run("build", "--no-prove", "--locked")
    assert refused.expect(2).err
    here.run("lock").expect(0)
    assert "holds no decision" in here.run("build", "--no-prove", "--locked").expect(2).err

    first = here.run("build", "--no-prove", "--json").expect(0).document["bundles"][0]
    lock = json.loads((workplace / "bundler.lock").read_text(encoding="utf-8"))
    recorded = lock["decisions"]["digits-perceptron-linux-x64"]["cpu"]["answer"]
    assert recorded == first["decisions"]["cpu"]["answer"]

    elsewhere = CommandLine(cache=cold.cache, cwd=workplace)
    again = elsewhere.run("build", "--no-prove", "--locked", "--json", "--output", str(workplace / "other")).expect(0)
    assert "trying precision" not in again.err
    assert again.document["bundles"][0]["precisions"] == first["precisions"]
    mine, theirs = (Path(item["bundle"]) / "bundle.json" for item in (first, again.document["bundles"][0]))
    assert mine.read_bytes() == theirs.read_bytes()


def test_a_method_whose_loss_nothing_shows_is_not_chosen(bundler: CommandLine, tmp_path: Path) -> None:
    layer = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32) / 32
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["b"]),
        helper.make_node("Tanh", ["b"], ["c"]),
        helper.make_node("Sub", ["c", "two"], ["d"]),
        helper.make_node("Log", ["d"], ["y"]),  # of negative numbers
    ]
    graph = helper.make_graph(
        nodes,
        "undefined",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 1024])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 1024])],
        [numpy_helper.from_array(layer, "w"), numpy_helper.from_array(np.array(2, np.float32), "two")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    answer = bundler.run(
        "build",
        tmp_path / "m.onnx",
        "--target=linux-x64",
        f"--set={ONE_PYTHON}",
        "--set=precision.method=auto",
        '--set=precision.order=["dynamic-int8"]',
        f"--output={tmp_path / 'out'}",
        "--no-prove",
        "--json",
    ).expect(0)
    frontier = answer.document["bundles"][0]["decisions"]["cpu"]["answer"]
    assert frontier["chosen"] == "none"
    (attempt,) = [item for item in frontier["attempts"] if item["method"] == "dynamic-int8"]
    assert (attempt["state"], "no output can be judged" in attempt["reason"]) == ("failed", True)
