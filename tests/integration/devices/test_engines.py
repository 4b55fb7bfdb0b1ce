"""Engines of TensorRT for RTX for GPUs that are not here, built on a machine without one.

What cannot be tried here: no GPU and no driver is at hand, so nobody has opened these engines or run them. ONNX
Runtime's plugin does not even load without the driver's libraries. What stands in for it: the engine's header names the
devices that were asked for, its length and its version are right, and the node around it has the attributes that the
plugin writes itself (read in its source and in the strings of its 0.5.0 library).
"""

from __future__ import annotations

import copy
import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from bundler.environments.registry import Environments
from bundler.model.errors import StageError
from bundler.model.results import StepOutcome
from bundler.onnxkit.signatures import model_signature
from bundler.profiles.methods import METHODS
from tests.support import digits, models
from tests.support.bundles import cache_root
from tests.support.encoders import tiny_encoder
from tests.support.environment_stages import StageRunner
from tests.support.sample_sets import write_samples
from tests.support.stage_calls import call_stage

pytestmark = pytest.mark.slow

PROVIDER = "SomeExecutionProvider"
SDK = "1.7.1.116"
BITS = {"7.5": 1, "8.6": 4, "8.9": 8, "12.0": 16}


@pytest.fixture
def run(shared: Path, tmp_path: Path) -> StageRunner:
    return StageRunner(Environments(cache_root(shared / "cache")), tmp_path / "runs")


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    """Trained on handwritten digits, one image at a time."""
    model = copy.deepcopy(digits.make_network("convolutional"))
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.shape.dim[0].dim_value = 1
    return models.save(model, tmp_path / "classifier")


def build(run: StageRunner, model: Path, *devices: str, **options: Any) -> StepOutcome:
    return run("build_engine", "tensorrt-rtx", {"model": model}, provider=PROVIDER, devices=list(devices), **options)


def refuse(run: StageRunner, model: Path, *devices: str, **options: Any) -> StageError:
    with pytest.raises(StageError) as caught:
        build(run, model, *devices, **options)
    return caught.value


def read_node(outcome: StepOutcome) -> dict[str, Any]:
    (node,) = onnx.load(str(outcome.path)).graph.node
    assert (node.op_type, node.domain) == ("EPContext", "com.microsoft")
    return {item.name: helper.get_attribute_value(item) for item in node.attribute}


def read_header(engine: bytes) -> dict[str, Any]:
    magic, size, *version, bits = struct.unpack_from("<4s12xQ4B4xI", engine)
    return {"magic": magic, "size": size, "version": ".".join(map(str, version)), "bits": bits}


def check_outcome(outcome: StepOutcome, source: Path, *devices: str) -> None:
    """The files are whole and for these devices, and the facts say so."""
    assert sorted(path.name for path in outcome.folder.iterdir()) == ["engine.bin", "model.onnx"]
    engine = (outcome.folder / "engine.bin").read_bytes()
    bits = sum(BITS[device] for device in devices)
    assert read_header(engine) == {"magic": b"vtrt", "size": len(engine), "version": SDK, "bits": bits}
    facts = outcome.facts
    assert (facts["provider"], facts["share"], facts["left"], facts["contexts"]) == (PROVIDER, 1.0, 0, 1)
    assert facts["devices"] == list(devices)
    assert (facts["sdk"], facts["bytes"], facts["statement"]) == (SDK, len(engine), engine[:64].hex())
    wrapped, original = onnx.load(str(outcome.path)), onnx.load(str(source))
    onnx.checker.check_model(wrapped)
    assert model_signature(wrapped) == model_signature(original)
    assert {entry.key: entry.value for entry in wrapped.metadata_props}[f"ep_compatibility_info.{PROVIDER}"] == (
        engine[:64].hex()
    )


@pytest.mark.parametrize("device", ["8.6", "8.9", "12.0"])
def test_a_classifier_in_floats(run: StageRunner, classifier: Path, device: str) -> None:
    outcome = build(run, classifier, device)
    check_outcome(outcome, classifier, device)
    node = read_node(outcome)
    assert (node["embed_mode"], node["ep_cache_context"], node["source"]) == (0, b"engine.bin", PROVIDER.encode())
    assert outcome.facts["tf32"]
    assert not outcome.notes


@pytest.mark.parametrize("device", ["8.6", "8.9", "12.0"])
def test_a_classifier_quantised_for_it(tmp_path: Path, run: StageRunner, classifier: Path, device: str) -> None:
    train, _ = digits.load_digits()
    samples = write_samples(tmp_path / "samples", classifier, [{"image": image[None]} for image in train.images[:24]])
    inputs = {"model": classifier, "samples": samples}
    call_stage("quantize_static", tmp_path / "quantized", inputs, **METHODS["static-tensorrt"].options)
    quantized = tmp_path / "quantized" / "model.onnx"
    check_outcome(build(run, quantized, device), classifier, device)


def test_the_oldest_gpu_takes_half_precision_alone(tmp_path: Path, run: StageRunner, classifier: Path) -> None:
    error = refuse(run, classifier, "7.5")
    assert "FP32 GEMM is not supported" in error.details[0]
    assert "precision.method=fp16" in str(error.hint)
    call_stage("convert_float", tmp_path / "half", {"model": classifier})
    outcome = build(run, tmp_path / "half" / "model.onnx", "7.5", half=True)
    check_outcome(outcome, classifier, "7.5")
    assert "on 7.5 it will not load" in outcome.notes[0].text


def test_one_engine_for_several_gpus(run: StageRunner, classifier: Path) -> None:
    outcome = build(run, classifier, "12.0", "8.6", "8.9")
    check_outcome(outcome, classifier, "8.6", "8.9", "12.0")
    apart = sum(build(run, classifier, device).facts["bytes"] for device in ("8.6", "8.9", "12.0"))
    assert outcome.facts["bytes"] < apart
    assert read_node(outcome)["hardware_architecture"] == b"SM86,SM89,SM120"


def test_the_engine_inside_the_model(run: StageRunner, classifier: Path) -> None:
    outcome = build(run, classifier, "8.9", embed=True)
    assert [path.name for path in outcome.folder.iterdir()] == ["model.onnx"]
    node = read_node(outcome)
    assert node["embed_mode"] == 1
    assert read_header(node["ep_cache_context"])["size"] == len(node["ep_cache_context"]) == outcome.facts["bytes"]


def test_dynamic_inputs_need_their_shapes(tmp_path: Path, run: StageRunner) -> None:
    model = models.save(tiny_encoder(), tmp_path / "encoder")
    error = refuse(run, model, "8.9")
    assert error.details[0] == "'input_ids' is [?, ?], which has no shapes"
    assert len(error.details) == 3
    shapes = [[1, 1], [1, 16], [4, 64]]
    names = ("input_ids", "attention_mask", "token_type_ids")
    outcome = build(run, model, "8.9", profiles=dict.fromkeys(names, shapes))
    check_outcome(outcome, model, "8.9")
    assert outcome.facts["profiles"] == dict.fromkeys(names, shapes)


def test_weights_beside_the_model(tmp_path: Path, run: StageRunner) -> None:
    proto = models.cnn(batch=1)
    inside = build(run, models.save(proto, tmp_path / "inside"), "8.9")
    outside = build(run, models.save_external(proto, tmp_path / "outside"), "8.9")
    assert (inside.folder / "engine.bin").read_bytes() == (outside.folder / "engine.bin").read_bytes()


def test_equal_models_give_equal_bytes_in_other_processes_and_folders(
    tmp_path: Path, run: StageRunner, classifier: Path
) -> None:
    elsewhere = models.save(onnx.load(str(classifier)), tmp_path / "a much longer name of a folder", "other.onnx")
    found = [build(run, path, "8.6", "12.0") for path in (classifier, elsewhere, classifier)]
    files = [{path.name: path.read_bytes() for path in outcome.folder.iterdir()} for outcome in found]
    assert files[0] == files[1] == files[2]
    assert found[0].facts == found[1].facts == found[2].facts


def test_dynamic_shapes_give_equal_bytes_too(tmp_path: Path, run: StageRunner) -> None:
    """The builder orders by addresses in memory, unless those are the same each time."""
    proto = copy.deepcopy(digits.make_network("convolutional"))
    shapes = {proto.graph.input[0].name: [[1, 1, 8, 8], [4, 1, 8, 8], [8, 1, 8, 8]]}
    encoder_shapes = {key: [[1, 2], [1, 16], [4, 64]] for key in ("input_ids", "attention_mask", "token_type_ids")}
    for name, model, profiles in (("cnn", proto, shapes), ("encoder", tiny_encoder(), encoder_shapes)):
        folders = [tmp_path / name, tmp_path / f"{name} in a much longer folder"]
        found = [build(run, models.save(model, folder), "8.6", "8.9", profiles=profiles) for folder in folders]
        engines = [(outcome.folder / "engine.bin").read_bytes() for outcome in found]
        if any(outcome.notes for outcome in found):
            assert "does not build this model with dynamic shapes reproducibly" in " ".join(
                note.text for outcome in found for note in outcome.notes
            )
        else:
            assert engines[0] == engines[1]


def test_unknown_sizes_of_one_name_are_reported_of(tmp_path: Path, run: StageRunner) -> None:
    """TensorRT ties dimensions of one name together, also where that is an exporter's `?`."""
    proto = models.cnn()
    for axis in (0, 2, 3):
        proto.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = "?"
    shapes = [[1, 3, 16, 32], [2, 3, 32, 64], [4, 3, 64, 64]]
    error = refuse(run, models.save(proto, tmp_path / "model"), "8.9", profiles={"image": shapes})
    assert "treats dimensions of the same name as equal" in str(error.hint)


def test_operators_that_it_lacks_are_named(tmp_path: Path, run: StageRunner) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="first"),
        helper.make_node("Sparkle", ["a"], ["b"], name="strange", domain="com.example"),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Unique", ["c"], ["y"], name="unique"),
    ]
    weights = models.tensor("w", models.weights(3, 3, 3, 3))
    model = models.make_model(nodes, [models.value("x", [1, 3, 8, 8])], [models.value("y", [None])], (weights,))
    if not any(opset.domain == "com.example" for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid("com.example", 1))
    error = refuse(run, models.save(model, tmp_path / "model"), "8.9")
    assert error.message.startswith("TensorRT for RTX does not support ")
    assert "com.example.Sparkle 'strange': operator not supported" in error.details
    assert "compiles only whole models" in str(error.hint)


def test_text_is_refused(tmp_path: Path, run: StageRunner) -> None:
    error = refuse(run, models.save(models.strings(), tmp_path / "model"), "8.9")
    assert "unsupported type" in error.details[0]


def test_a_model_quantised_for_something_else_is_refused(tmp_path: Path, run: StageRunner, classifier: Path) -> None:
    images = np.random.default_rng(0).random((4, 1, 1, 8, 8), np.float32)
    samples = write_samples(tmp_path / "samples", classifier, [{"image": image} for image in images])
    call_stage(
        "quantize_static",
        tmp_path / "quantized",
        {"model": classifier, "samples": samples},
        **METHODS["static-qnn"].options,
    )
    error = refuse(run, tmp_path / "quantized" / "model.onnx", "8.9")
    assert error.details[0].startswith("DequantizeLinear ")
    assert "quantise for it" in str(error.hint)


def test_a_gpu_that_nobody_makes(run: StageRunner, classifier: Path) -> None:
    error = refuse(run, classifier, "8.9", "9.9")
    assert error.details == ("supported: 7.5, 8.0, 8.6, 8.9, 12.0, 12.1",)


def test_half_precision_is_in_the_model_or_nowhere(run: StageRunner, classifier: Path) -> None:
    error = refuse(run, classifier, "8.9", half=True)
    assert "precision.method=fp16" in str(error.hint)
