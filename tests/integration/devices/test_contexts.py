"""Models compiled for devices that are not here, by the vendors' own compilers, and run in their emulation."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from bundler.environments.registry import Environments
from bundler.model.errors import StageError
from bundler.onnxkit.placement_facts import counted_nodes
from bundler.profiles.methods import METHODS
from tests.support import digits, models
from tests.support.bundles import cache_root
from tests.support.device_stages import (
    CPU_DEVICE,
    HALF,
    OPENVINO,
    SM8650,
    compare_on,
    compile_for,
    compile_in_turn,
    context_nodes,
    read_files,
    worst_sqnr,
)
from tests.support.encoders import encoder, sentences
from tests.support.environment_stages import StageRunner
from tests.support.sample_sets import write_samples
from tests.support.stage_calls import call_stage, compare, record

SEALED = {"session.disable_model_compile": "1"}
"""As on the device: a context that cannot be used is an error."""


@pytest.fixture
def run(shared: Path, tmp_path: Path) -> StageRunner:
    return StageRunner(Environments(cache_root(shared / "cache")), tmp_path / "runs")


def fix_batch(model: onnx.ModelProto, size: int = 1) -> onnx.ModelProto:
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.shape.dim[0].dim_value = size
    return model


def quantize(folder: Path, model: Path, feeds: list[Mapping[str, np.ndarray]], **options: Any) -> Path:
    samples = write_samples(folder / "samples", model, feeds)
    call_stage(
        "quantize_static",
        folder / "quantized",
        {"model": model, "samples": samples},
        **{**METHODS["static-qnn"].options, **options},
    )
    return folder / "quantized" / "model.onnx"


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    """Trained on handwritten digits, one image at a time."""
    return models.save(fix_batch(digits.make_network("convolutional")), tmp_path / "classifier")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return models.save(models.cnn(batch=1), tmp_path / "small")


def split_model() -> onnx.ModelProto:
    """Two parts for the NPU around an operator that it has not."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1, 1, 1, 1], name="first"),
        helper.make_node("Acosh", ["a"], ["b"], name="strange"),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Conv", ["c", "w2"], ["y"], pads=[1, 1, 1, 1]),
    ]
    shape = [1, 3, 8, 8]
    first = np.abs(models.weights(3, 3, 3, 3)) + 1  # Acosh is defined from 1 on
    tensors = (models.tensor("w1", first), models.tensor("w2", models.weights(3, 3, 3, 3, seed=1)))
    return models.make_model(nodes, [models.value("x", shape)], [models.value("y", shape)], tensors)


def positive(model: Path, folder: Path, *shape: int) -> Path:
    values = np.random.default_rng(0).uniform(1, 2, (2, *shape)).astype(np.float32)
    return record(model, folder / "golden", write_samples(folder / "inputs", model, [{"x": value} for value in values]))


def test_a_quantised_classifier_runs_as_its_golden_answers_say(
    tmp_path: Path, run: StageRunner, classifier: Path
) -> None:
    train, held_out = digits.load_digits()
    feeds = [{"image": image[None]} for image in train.images[:24]]
    quantized = quantize(tmp_path, classifier, feeds)
    judged = write_samples(tmp_path / "judged", classifier, [{"image": image[None]} for image in held_out.images[:24]])
    golden = record(classifier, tmp_path / "golden", judged)
    outcome = compile_for(run, quantized)
    assert outcome.facts["share"] == 1.0
    assert outcome.facts["contexts"] == 1
    assert outcome.facts["devices"] == ["57"]
    assert outcome.facts["statement"].split(":")[4:6] == ["75", "57"]
    assert sorted(read_files(outcome.folder)) == ["context.bin", "model.onnx"]
    device = compare_on(run, outcome.path, golden, session_config=SEALED)
    host = compare(quantized, golden, tmp_path / "host", providers=[["CPUExecutionProvider", {}]])
    assert worst_sqnr(device) > worst_sqnr(host) - 3  # what is lost was lost by quantising
    assert device.outputs[0].top1_agreement is not None
    assert device.outputs[0].top1_agreement >= 22 / 24


def test_branches_that_read_weights_of_the_main_graph(tmp_path: Path, run: StageRunner) -> None:
    """The runtime forgot those weights when it wrote the compiled model, and called the rest unsorted."""
    source = models.save(models.choosing(), tmp_path / "choosing")
    feeds = [{"x": np.full((1, 3), sign, np.float32)} for sign in (-1, 1)]
    golden = record(source, tmp_path / "golden", write_samples(tmp_path / "inputs", source, feeds))
    call_stage("optimize", tmp_path / "optimized", {"model": source}, level="basic")
    outcome = compile_for(run, tmp_path / "optimized" / "model.onnx", SM8650 | HALF)
    assert outcome.facts["contexts"] == 1
    assert worst_sqnr(compare_on(run, outcome.path, golden, SM8650 | HALF, session_config=SEALED)) > 35


@pytest.mark.parametrize("constants", [False, True], ids=["weights", "constants"])
def test_branches_that_the_compiler_leaves_keep_their_weights(tmp_path: Path, run: StageRunner, constants) -> None:
    """It takes no condition with two outputs, and the runtime could not write what the branches hold in memory."""
    model = models.branch_weights()
    (choice,) = (item for item in model.graph.node if item.op_type == "If")
    for branch in (item.g for item in choice.attribute):
        weight = branch.initializer[0]
        branch.node.append(helper.make_node("Neg", [branch.output[0].name], [f"{branch.name}_negated"]))
        branch.output.append(models.value(f"{branch.name}_negated", [1, 512]))
        if constants:
            branch.node.insert(0, helper.make_node("Constant", [], [weight.name], value=weight))
            del branch.initializer[:]
    choice.output.append("negated")
    model.graph.output.append(models.value("negated", [1, 512]))
    source = models.save(model, tmp_path / "model")
    feeds = [{"x": np.ones((1, 512), np.float32), "positive": np.array(value)} for value in (False, True)]
    golden = record(source, tmp_path / "golden", write_samples(tmp_path / "inputs", source, feeds))
    outcome = compile_for(run, source, SM8650 | HALF)
    assert (outcome.facts["assigned"], outcome.facts["left"]) == (1, 5)
    assert [node["operator"] for node in outcome.facts["left_nodes"]] == ["If"]
    assert "depends on the input 'positive'" in outcome.facts["left_nodes"][0]["reason"]
    assert worst_sqnr(compare_on(run, outcome.path, golden, SM8650 | HALF, session_config=SEALED)) > 35


def test_a_float_encoder_computes_in_halves(tmp_path: Path, run: StageRunner) -> None:
    sizes = {"batch": 1, "sequence": 16}
    source = models.save(encoder(**sizes), tmp_path / "encoder")
    golden = record(source, tmp_path / "golden", write_samples(tmp_path / "inputs", source, [sentences(1, 16, seed=3)]))
    call_stage("optimize", tmp_path / "optimized", {"model": source}, level="basic")
    outcome = compile_for(run, tmp_path / "optimized" / "model.onnx", SM8650 | HALF)
    assert outcome.facts["share"] > 0.9
    assert worst_sqnr(compare_on(run, outcome.path, golden, SM8650 | HALF, session_config=SEALED)) > 35


@pytest.mark.parametrize("activations", ["uint8", "uint16"])
def test_a_quantised_encoder_loses_no_more_than_on_the_cpu(tmp_path: Path, run: StageRunner, activations: str) -> None:
    source = models.save(encoder(batch=1, sequence=16), tmp_path / "encoder")
    golden = record(
        source, tmp_path / "golden", write_samples(tmp_path / "inputs", source, [sentences(1, 16, seed=99)])
    )
    call_stage("optimize", tmp_path / "optimized", {"model": source}, level="basic")
    feeds = [sentences(1, 16, seed=seed) for seed in range(8)]
    quantized = quantize(tmp_path, tmp_path / "optimized" / "model.onnx", feeds, activation_type=activations)
    outcome = compile_for(run, quantized)
    assert (outcome.facts["left"], outcome.facts["contexts"]) == (0, 1)
    device = worst_sqnr(compare_on(run, outcome.path, golden, session_config=SEALED))
    host = worst_sqnr(compare(quantized, golden, tmp_path / "host", providers=[["CPUExecutionProvider", {}]]))
    assert device > host - 3


def test_a_model_with_weights_beside_it_computes_in_halves(tmp_path: Path, run: StageRunner) -> None:
    source = models.save_external(models.cnn(batch=1), tmp_path / "model")
    golden = record(source, tmp_path / "golden")
    outcome = compile_for(run, source, SM8650 | HALF)
    assert worst_sqnr(compare_on(run, outcome.path, golden, session_config=SEALED)) > 35


def test_the_same_model_gives_the_same_bytes_anywhere(tmp_path: Path, run: StageRunner, small: Path) -> None:
    """In another folder, under another name, in another process, and in one that has compiled before."""
    elsewhere = models.save(models.cnn(batch=1), tmp_path / "a" / "longer" / "way", "other.onnx")
    outputs = [tmp_path / "turns" / str(turn) for turn in range(3)]
    answers = compile_in_turn(run.environments, tmp_path / "logs", small, outputs)
    assert all("error" not in answer for answer in answers), answers
    expected = read_files(outputs[0])
    assert expected == read_files(outputs[1]) == read_files(outputs[2])
    assert expected == read_files(compile_for(run, elsewhere, SM8650 | HALF).folder)
    assert not any(str(tmp_path).encode() in data for data in expected.values())


def test_a_context_in_the_models_own_file(tmp_path: Path, run: StageRunner, small: Path) -> None:
    golden = record(small, tmp_path / "golden")
    outcome = compile_for(run, small, SM8650 | HALF, embed=True)
    assert sorted(read_files(outcome.folder)) == ["model.onnx"]
    assert context_nodes(outcome.path)[0]["embed_mode"] == 1
    assert worst_sqnr(compare_on(run, outcome.path, golden, session_config=SEALED)) > 35


def test_one_context_for_several_devices(run: StageRunner, small: Path) -> None:
    several = SM8650 | HALF | {"soc_model": "43,57,69", "htp_arch": "73,75,79"}
    outcome = compile_for(run, small, several)
    assert outcome.facts["devices"] == ["43", "57", "69"]
    assert context_nodes(outcome.path)[0]["is_multi_soc_ep_context"] == 1
    assert outcome.facts["bytes"] < 3 * compile_for(run, small, SM8650 | HALF).facts["bytes"]


def test_what_the_device_lacks_stays_on_the_cpu_and_is_reported(tmp_path: Path, run: StageRunner) -> None:
    source = models.save(split_model(), tmp_path / "split")
    golden = positive(source, tmp_path, 1, 3, 8, 8)
    outcome = compile_for(run, source, SM8650 | HALF)
    assert (outcome.facts["assigned"], outcome.facts["left"], outcome.facts["contexts"]) == (3, 1, 2)
    assert outcome.facts["left_nodes"] == [{"name": "strange", "operator": "Acosh", "reason": "operator not supported"}]
    assert "1 of 4 nodes are assigned to the CPU: Acosh (1): operator not supported" in outcome.notes[0].text
    assert worst_sqnr(compare_on(run, outcome.path, golden, SM8650 | HALF, session_config=SEALED)) > 30
    with pytest.raises(StageError, match="1 of 4 nodes are not assigned"):
        compile_for(run, source, SM8650 | HALF, partial=False)


def test_dynamic_dimensions_are_named_with_what_to_do(tmp_path: Path, run: StageRunner) -> None:
    source = models.save(models.cnn(), tmp_path / "dynamic")
    with pytest.raises(StageError, match="the model has dynamic dimensions") as caught:
        compile_for(run, source, SM8650 | HALF)
    assert (caught.value.hint or "").startswith("fix them, for example --dim batch=1 ")
    assert caught.value.details == ("image has the dimension batch",)


def test_bytes_of_a_picture_are_numbers_on_the_device(tmp_path: Path, run: StageRunner) -> None:
    """QNN has one type for bytes and truth values."""
    nodes = [
        helper.make_node("Cast", ["x"], ["numbers"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Mul", ["numbers", "half"], ["y"]),
    ]
    ports = [models.value("x", [1, 8, 8, 3], onnx.TensorProto.UINT8)], [models.value("y", [1, 8, 8, 3])]
    constant = (models.tensor("half", np.array(0.5, np.float32)),)
    source = models.save(models.make_model(nodes, *ports, constant), tmp_path / "picture")
    outcome = compile_for(run, source, SM8650 | HALF, wide_casts=True)
    assert "1 cast from uint8 to floating point made through int32" in outcome.notes[0].text
    assert worst_sqnr(compare_on(run, outcome.path, record(source, tmp_path / "golden"), SM8650 | HALF)) > 60


def test_a_device_that_the_compiler_does_not_know_is_an_error(run: StageRunner, small: Path) -> None:
    with pytest.raises(StageError, match="no node can be assigned to") as caught:
        compile_for(run, small, SM8650 | HALF | {"soc_model": "9999"})
    assert "soc_model=9999" in caught.value.details[1]


def test_a_device_compiled_for_no_one_in_particular_is_an_error(
    tmp_path: Path, run: StageRunner, classifier: Path
) -> None:
    """The compiler only warns of a name that it does not know."""
    quantized = quantize(tmp_path, classifier, [{"image": image[None]} for image in digits.load_digits()[0].images[:4]])
    with pytest.raises(StageError, match="compiled for another device than requested") as caught:
        compile_for(run, quantized, SM8650 | {"soc_model": "SM8650"})
    assert caught.value.details[0] == "soc_model=SM8650 was requested"


def test_a_session_that_would_run_on_the_cpu_in_silence_is_an_error(
    tmp_path: Path, run: StageRunner, small: Path
) -> None:
    golden = record(small, tmp_path / "golden")
    with pytest.raises(StageError, match="QNNExecutionProvider does not run this model") as caught:
        compare_on(run, small, golden, SM8650 | {"soc_model": "9999"})
    assert "no node is assigned" in caught.value.details[0]


def test_an_altered_context_never_passes_as_good(tmp_path: Path, run: StageRunner, small: Path) -> None:
    """It may open and answer otherwise, or not open: digests are what a loader can tell it by."""
    golden = record(small, tmp_path / "golden")
    outcome = compile_for(run, small, SM8650 | HALF)
    shutil.copytree(outcome.folder, tmp_path / "altered")
    context = tmp_path / "altered" / "context.bin"
    data = bytearray(context.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 20_000] = bytes(byte ^ 0x5A for byte in data[middle : middle + 20_000])
    context.write_bytes(data)
    good = worst_sqnr(compare_on(run, outcome.path, golden, session_config=SEALED))
    try:
        bad = worst_sqnr(compare_on(run, tmp_path / "altered" / "model.onnx", golden, session_config=SEALED))
    except StageError:
        return
    assert bad < good - 10


def test_a_compiled_model_is_not_compiled_again(run: StageRunner, small: Path) -> None:
    outcome = compile_for(run, small, SM8650 | HALF)
    with pytest.raises(StageError, match="is already compiled for a device"):
        compile_for(run, outcome.path, SM8650 | HALF)


def test_two_models_of_the_same_weights_share_them(tmp_path: Path, run: StageRunner) -> None:
    """Emulation cannot run a shared context (its library crashes), so its sizes and names are all that is seen here."""
    first, second = (models.save(wide(length), tmp_path / str(length)) for length in (16, 32))
    both = compile_for(run, first, SM8650 | HALF, partner=second)
    alone = sum(compile_for(run, model, SM8650 | HALF).facts["bytes"] for model in (first, second))
    assert sorted(read_files(both.folder)) == ["context.bin", "model.onnx", "partner.onnx"]
    assert both.facts["bytes"] < 0.6 * alone
    names = {
        node["ep_cache_context"]
        for name in ("model", "partner")
        for node in context_nodes(both.folder / f"{name}.onnx")
    }
    assert names == {b"context.bin"}
    assert both.facts["partner"]["share"] == 1.0


def wide(length: int) -> onnx.ModelProto:
    """Four layers of 256 for sequences of one length."""
    nodes = [helper.make_node("MatMul", [f"m{index}", f"w{index}"], [f"m{index + 1}"]) for index in range(4)]
    nodes[0].input[0] = "x"
    nodes[3].output[0] = "y"
    tensors = tuple(models.tensor(f"w{index}", models.weights(256, 256, seed=index)) for index in range(4))
    shape = [1, length, 256]
    return models.make_model(nodes, [models.value("x", shape)], [models.value("y", shape)], tensors)


def test_openvino_opens_what_it_compiled(tmp_path: Path, run: StageRunner, small: Path) -> None:
    golden = record(small, tmp_path / "golden")
    try:
        outcome = compile_for(run, small, {}, provider=OPENVINO, select=CPU_DEVICE)
    except StageError as error:
        if "has no device on this machine" not in error.message:
            raise
        pytest.skip(f"OpenVINO's plugin lists no CPU here: {error.details}")
    assert outcome.facts["share"] == 1.0
    assert "isa=" in outcome.facts["statement"]
    assert outcome.facts["devices"] == ["CPU"]
    found = compare_on(run, outcome.path, golden, {}, provider=OPENVINO, select=CPU_DEVICE, session_config=SEALED)
    assert worst_sqnr(found) > 35
    again = compile_for(run, small, {}, provider=OPENVINO, select=CPU_DEVICE)
    assert read_files(outcome.folder) == read_files(again.folder)


def test_a_device_that_is_not_here_is_reported_with_those_that_are(run: StageRunner, small: Path) -> None:
    with pytest.raises(StageError, match=r"has no device on this machine with ov_device=none") as caught:
        compile_for(run, small, {}, provider=OPENVINO, select={"ov_device": "none"})
    assert caught.value.details


def test_a_plugin_that_is_not_in_the_environment(run: StageRunner, small: Path) -> None:
    with pytest.raises(StageError, match="is not in this environment: no module onnxruntime_nowhere"):
        compile_for(run, small, library="onnxruntime_nowhere")


PLACEMENT = """
import json, sys
import onnxruntime, onnxruntime_qnn
source, values = sys.argv[1], json.loads(sys.argv[2])
onnxruntime.register_execution_provider_library("QNNExecutionProvider", onnxruntime_qnn.get_library_path())
device = next(item for item in onnxruntime.get_ep_devices() if item.ep_name == "QNNExecutionProvider")
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
options.add_provider_for_devices([device], values)
parts = onnxruntime.InferenceSession(source, options).get_provider_graph_assignment_info()
left = [node.op_type for part in parts if part.ep_name != "QNNExecutionProvider" for node in part.get_nodes()]
print("\\nleft:" + json.dumps(sorted(left)))
"""


def unfolded_encoder(folder: Path) -> Path:
    """Its shapes are computed while it runs, as exporters write them."""
    return models.save(encoder(batch=1, sequence=16), folder)


def test_what_is_left_is_what_the_runtime_itself_places_elsewhere(tmp_path: Path, run: StageRunner) -> None:
    source = unfolded_encoder(tmp_path / "encoder")
    outcome = compile_for(run, source, SM8650 | HALF)
    options = [str(source), json.dumps(SM8650 | HALF)]
    python = run.environments.resolve("qnn").python
    ended = subprocess.run([python, "-I", "-c", PLACEMENT, *options], capture_output=True, text=True, check=True)
    left = json.loads(ended.stdout.rpartition("left:")[2].partition("\n")[0])  # the vendor's library prints, too
    assert outcome.facts["left"] == len(left)
    assert {node["operator"] for node in outcome.facts["left_nodes"]} <= set(left)
    assert outcome.facts["assigned"] + outcome.facts["left"] == len(counted_nodes(onnx.load(source)))
    assert len(outcome.facts["left_nodes"]) == 50
    assert {node["reason"] for node in outcome.facts["left_nodes"]} == {"dynamic shape", "operator not supported"}


def test_shapes_computed_while_it_runs_split_a_model_which_still_answers_right(
    tmp_path: Path, run: StageRunner
) -> None:
    """The runtime must leave such a model as it is: it would fold inputs of what was compiled."""
    source = unfolded_encoder(tmp_path / "encoder")
    golden = record(source, tmp_path / "golden", write_samples(tmp_path / "inputs", source, [sentences(1, 16, seed=3)]))
    outcome = compile_for(run, source, SM8650 | HALF)
    assert outcome.facts["contexts"] > 1
    as_it_is = {"graph_optimization_level": "none"}
    found = compare_on(run, outcome.path, golden, SM8650 | HALF, session=as_it_is, session_config=SEALED)
    assert worst_sqnr(found) > 35
