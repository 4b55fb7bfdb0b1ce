"""Wrong models that look right by one figure end with exit code 7; a good one of the same kind is built."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from tests.support import digits, models
from tests.support.command_line import Answer, CommandLine
from tests.support.documents import read_document

COUNT = 40


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Digits to calibrate with, and others to judge on."""
    folder = tmp_path_factory.mktemp("fooled")
    train, held_out = digits.load_digits()
    digits.write_samples(train.part(COUNT), folder / "calibration", "convolutional")
    digits.write_samples(held_out.part(COUNT), folder / "samples", "convolutional")
    return folder


def build(bundler: CommandLine, model: Path, calibration: Path, samples: Path, *more: str) -> Answer:
    """An int8 model of it, as whoever quantises everything makes one."""
    return bundler.run(
        "build",
        model,
        "--target=linux-x64",
        "--format=files",
        "--no-prove",
        "--set=precision.method=static-int8-full",
        "--set=precision.calibration=minmax",
        f"--calibration={calibration}",
        f"--samples={samples}",
        f"--output={model.parent / 'out'}",
        "--json",
        "--progress=none",
        *more,
    )


def figures(answer: Answer) -> dict[str, Any]:
    """What the build says of its only variant's accuracy."""
    (found,) = answer.expect(0).document["bundles"][0]["accuracies"]
    return dict(found)


def with_tail(*nodes: onnx.NodeProto, constants: dict[str, np.ndarray], outputs: list[Any]) -> ModelProto:
    """The trained network with `nodes` behind its scores, and their outputs instead of it."""
    model = ModelProto.FromString(digits.make_convolutional().SerializeToString())
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(models.tensor(name, values) for name, values in constants.items())
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    return model


def test_an_offset_that_all_logits_share_hides_no_noise(bundler: CommandLine, data: Path, tmp_path: Path) -> None:
    scores = [models.value("y", ["batch", 10])]
    for name, offset in (("plain", 0.0), ("shifted", 1000.0)):
        node = helper.make_node("Add", ["scores", "offset"], ["y"], "shift")
        model = with_tail(node, constants={"offset": np.array([offset], np.float32)}, outputs=scores)
        models.save(model, tmp_path, f"{name}.onnx")
    plain = figures(build(bundler, tmp_path / "plain.onnx", data / "calibration", data / "samples"))
    assert plain["sqnr_db"] > 25
    assert plain["top1_agreement"] >= plain["limit"]["top1_agreement"] == 0.95
    answer = build(bundler, tmp_path / "shifted.onnx", data / "calibration", data / "samples")
    error = answer.expect(7).document["error"]
    assert any("SQNR " in line for line in error["details"])


def scale_one(source: Path, folder: Path, factor: float) -> Path:
    """The same samples with one that is so many times larger."""
    folder.mkdir()
    for place, path in enumerate(sorted(source.glob("*.npz"))):
        with np.load(path) as stored:
            image = stored["image"]
        np.savez(folder / path.name, image=image * np.float32(factor if place == 0 else 1))
    return folder


def test_one_sample_that_is_much_larger_hides_no_other(bundler: CommandLine, data: Path, tmp_path: Path) -> None:
    model = digits.write_network("convolutional", tmp_path)
    figures(build(bundler, model, data / "calibration", data / "samples"))
    loud = [scale_one(data / name, tmp_path / name, 1000) for name in ("calibration", "samples")]
    error = build(bundler, model, *loud).expect(7).document["error"]
    text = "\n".join(error["details"])
    assert "of the worst sample" in text
    assert "of the lowest tenth of the samples" in text


def test_labels_that_change_are_no_rounding(bundler: CommandLine, data: Path, tmp_path: Path) -> None:
    """The label of a wrecked classifier: integers, which no ratio of signal to noise judges."""
    label = [models.value("label", ["batch"], TensorProto.INT64)]
    pick = helper.make_node("ArgMax", ["shifted"], ["label"], "pick", axis=1, keepdims=0)
    for name, offset in (("plain", 0.0), ("shifted", 3000.0)):
        add = helper.make_node("Add", ["scores", "offset"], ["shifted"], "shift")
        model = with_tail(add, pick, constants={"offset": np.array([offset], np.float32)}, outputs=label)
        models.save(model, tmp_path, f"{name}.onnx")
    plain = figures(build(bundler, tmp_path / "plain.onnx", data / "calibration", data / "samples"))
    assert plain["agreement"] >= plain["limit"]["agreement"] == 0.97
    answer = build(bundler, tmp_path / "shifted.onnx", data / "calibration", data / "samples")
    assert any("values differ" in line for line in answer.expect(7).document["error"]["details"])


def test_rounded_numbers_may_move_by_a_step(bundler: CommandLine, data: Path, tmp_path: Path) -> None:
    """Pixels of a box, say: hardly one is equal, and none is far off."""
    nodes = [
        helper.make_node("Mul", ["scores", "scale"], ["scaled"], "scale_up"),
        helper.make_node("Round", ["scaled"], ["rounded"], "round"),
        helper.make_node("Cast", ["rounded"], ["box"], "cast", to=TensorProto.INT64),
    ]
    box = [models.value("box", ["batch", 10], TensorProto.INT64)]
    model = with_tail(*nodes, constants={"scale": np.array([50], np.float32)}, outputs=box)
    found = figures(build(bundler, models.save(model, tmp_path), data / "calibration", data / "samples"))
    assert found["agreement"] < 0.9
    assert found["sqnr_db"] > 20


def test_what_could_not_fail_is_counted_and_lowers_the_level(bundler: CommandLine, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Add", ["x", "one"], ["y"]),
        helper.make_node("Sub", ["x", "x"], ["zero"]),
        helper.make_node("Shape", ["x"], ["size"]),
        helper.make_node("Div", ["zero", "zero"], ["nothing"]),
        helper.make_node("RandomNormalLike", ["x"], ["noise"]),
        helper.make_node("Slice", ["x", "end", "end"], ["empty"]),
    ]
    outputs = [models.value(name, ["n", 3]) for name in ("y", "zero", "nothing", "noise")]
    outputs += [models.value("empty", ["none", 3]), models.value("size", [2], TensorProto.INT64)]
    constants = [models.tensor("one", np.ones(1, np.float32)), models.tensor("end", np.array([10**6]))]
    model = models.make_model(nodes, [models.value("x", ["n", 3])], outputs, constants)
    path = models.save(model, tmp_path, "mixed.onnx")
    command = ("--target=linux-x64", "--format=files", f"--output={tmp_path}", "--progress=none")
    built = bundler.run("build", path, *command).expect(0)
    manifest = read_document(tmp_path / "mixed-linux-x64" / "bundle.json")
    unjudged = {output["name"]: output["unjudged"] for output in manifest["golden"]["outputs"] if output["unjudged"]}
    assert unjudged == {
        "zero": "it is zero, or almost zero, everywhere in every sample",
        "nothing": "it is NaN or infinite everywhere in every sample",
        "noise": "it differs from run to run",
        "empty": "it is empty in every sample",
    }
    assert manifest["proof"]["level"] == "ran-unchecked"
    assert "gate passed against the original model on 2 of 6 outputs" in built.out
    (line,) = (line for line in built.out.splitlines() if line.startswith("  Unchecked "))
    assert "reproduced" not in line
    bundle = tmp_path / "mixed-linux-x64"
    reported = json.loads(bundler.run("verify", bundle, "--json").expect(0).out)
    assert {variant["level"] for variant in reported["variants"]} == {reported["proof"]} == {"ran-unchecked"}
