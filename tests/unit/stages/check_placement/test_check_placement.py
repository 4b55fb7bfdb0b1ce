"""Estimated placement on a mobile provider, without a device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnxruntime.tools.mobile_helpers import usability_checker

from bundler.model.errors import ModelError, StageError
from bundler.model.stage import StageResult
from tests.support import models
from tests.support.encoders import tiny_encoder
from tests.support.stage_calls import call_stage

Checker = Literal["nnapi", "coreml-nn", "coreml-mlprogram"]
CHECKERS: tuple[Checker, ...] = ("nnapi", "coreml-nn", "coreml-mlprogram")
_COREML = {"function": "check_coreml_partitions"}
_OPTIONS: Mapping[Checker, Mapping[str, str]] = {
    "nnapi": {"function": "check_nnapi_partitions", "title": "NNAPI"},
    "coreml-nn": {
        **_COREML,
        "title": "CoreML NeuralNetwork",
        "operators": "coreml_supported_neuralnetwork_ops.md",
    },
    "coreml-mlprogram": {
        **_COREML,
        "title": "CoreML MLProgram",
        "operators": "coreml_supported_mlprogram_ops.md",
    },
}


def check(folder: Path, model: ModelProto, checker: Checker = "nnapi") -> StageResult:
    path = models.save(model, folder / "model")
    return call_stage("check_placement", folder / "out", {"model": path}, provider="Some", **_OPTIONS[checker])


def reasons(facts: Mapping[str, Any]) -> dict[str, str]:
    return {node["operator"]: node["reason"] for node in facts["left_nodes"]}


def chain(*operators: str, rank: int = 2) -> ModelProto:
    nodes = [helper.make_node(name, [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i, name in enumerate(operators)]
    shape = [2] * rank
    return models.make_model(nodes, [models.value("v0", shape)], [models.value(f"v{len(operators)}", shape)])


@pytest.mark.parametrize("checker", ["nnapi", "coreml-nn"])
def test_a_fixed_network_is_assigned_whole(tmp_path: Path, checker: Checker) -> None:
    result = check(tmp_path, models.cnn(batch=1), checker)
    facts = result.facts
    assert (facts["provider"], facts["assigned"], facts["left"], facts["share"]) == ("Some", 8, 0, 1.0)
    assert (facts["estimated"], facts["partitions"], facts["suitable"]) == (True, 1, "yes")
    assert "fixed" not in facts
    assert any("Conv" in caveat for caveat in facts["caveats"])
    assert result.notes == ()
    assert result.entry is None
    assert not list((tmp_path / "out").iterdir())


def test_an_operator_that_is_missing_splits_the_network(tmp_path: Path) -> None:
    result = check(tmp_path, models.cnn(batch=1), "coreml-mlprogram")
    assert (result.facts["assigned"], result.facts["left"], result.facts["partitions"]) == (7, 1, 2)
    assert reasons(result.facts) == {"Flatten": "the provider does not support the operator"}
    assert result.facts["suitable"] == "maybe"
    assert [note.level for note in result.notes] == ["info"]


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_dynamic_network_reports_the_gain_of_fixed_dimensions(tmp_path: Path, checker: Checker) -> None:
    result = check(tmp_path, models.cnn(), checker)
    assert result.facts["assigned"] == 0
    assert reasons(result.facts)["Conv"] == "an input has a dynamic shape"
    assert result.facts["fixed"]["assigned"] >= 7
    assert result.facts["fixed"]["suitable"] in ("yes", "maybe")
    (note,) = result.notes
    assert note.level == "warning"
    total = result.facts["fixed"]["assigned"] + result.facts["fixed"]["left"]
    assigned = result.facts["fixed"]["assigned"]
    assert note.text.endswith(f"{assigned} of {total} nodes are likely to be assigned to it")
    assert result.facts["fixed"]["options"] == ["--dim", "batch=1"]


def test_many_partitions_are_doubtful_in_the_checkers_own_words(tmp_path: Path) -> None:
    facts = check(tmp_path, chain("Relu", "Erf", "Relu", "Erf", "Relu", "Erf")).facts
    assert (facts["assigned"], facts["left"], facts["partitions"], facts["suitable"]) == (3, 3, 3, "no")
    assert "worse performance than just using the CPU" in facts["verdict"]


@pytest.mark.parametrize("checker", CHECKERS)
def test_nodes_that_all_give_outputs_are_read(tmp_path: Path, checker: Checker) -> None:
    nodes = [helper.make_node(name, ["x"], [name]) for name in ("Relu", "Sigmoid")]
    outputs = [models.value(name, [1, 4]) for name in ("Relu", "Sigmoid")]
    facts = check(tmp_path, models.make_model(nodes, [models.value("x", [1, 4])], outputs), checker).facts
    assert facts["assigned"] + facts["left"] == 2
    assert facts["assigned"] > 0


@pytest.mark.parametrize("checker", CHECKERS)
def test_nodes_of_texts_are_not_assigned(tmp_path: Path, checker: Checker) -> None:
    nodes = [helper.make_node("Gather", ["x", "place"], ["y"], axis=1), *chain("Relu", "Relu").graph.node]
    kinds = {"x": TensorProto.STRING, "y": TensorProto.STRING, "v0": TensorProto.FLOAT, "v2": TensorProto.FLOAT}
    x, y, v, w = (models.value(name, [1, 1], kind) for name, kind in kinds.items())
    model = models.make_model(nodes, [x, v], [y, w], (models.tensor("place", np.array([0], np.int64)),))
    facts = check(tmp_path, model, checker).facts
    assert (facts["assigned"], facts["left"]) == (2, 1)
    assert reasons(facts)["Gather"] in (
        "the provider does not support texts",
        "the provider does not support the operator",
    )


@pytest.mark.parametrize("checker", CHECKERS)
def test_nodes_that_compute_fixed_sizes_are_not_counted(tmp_path: Path, checker: Checker) -> None:
    dynamic = check(tmp_path / "dynamic", tiny_encoder(), checker).facts
    fixed = check(tmp_path / "fixed", tiny_encoder(batch=1, sequence=8), checker).facts
    assert dynamic["share"] < 0.1
    assert dynamic["fixed"]["share"] > 0.8
    assert fixed["share"] > 0.85
    assert "an input has a dynamic shape" not in reasons(fixed).values()
    assert not {"Shape", "Slice"} & reasons(fixed).keys()


def test_only_the_error_function_of_a_fixed_encoder_is_not_assigned(tmp_path: Path) -> None:
    facts = check(tmp_path, tiny_encoder(batch=1, sequence=8)).facts
    assert set(reasons(facts)) == {"Erf"}
    assert facts["left"] == 2


def test_too_many_dimensions(tmp_path: Path) -> None:
    facts = check(tmp_path, chain("Relu", "Sigmoid", rank=6), "coreml-mlprogram").facts
    assert set(reasons(facts).values()) == {"an input has more dimensions than the provider supports"}


@pytest.mark.parametrize("make", [models.contrib, models.unknown_domain, models.if_model, models.zipmap])
def test_unknown_operators_are_not_assigned(tmp_path: Path, make: Any) -> None:
    facts = check(tmp_path, make()).facts
    assert (facts["assigned"], facts["suitable"]) == (0, "no")
    assert "the provider does not support the operator" in reasons(facts).values()


def test_how_numbers_are_stored_is_not_counted(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Constant", [], ["c"], value=models.tensor("c", models.weights(2, 2))),
        helper.make_node("Add", ["d", "c"], ["y"]),
    ]
    parts = (models.tensor("s", models.weights(1)[0]), helper.make_tensor("z", TensorProto.UINT8, [], [0]))
    model = models.make_model(nodes, [models.value("x", [2, 2])], [models.value("y", [2, 2])], parts)
    facts = check(tmp_path, model).facts
    assert (facts["assigned"], facts["left"]) == (1, 0)


def test_equal_models_have_equal_facts(tmp_path: Path) -> None:
    found = [check(tmp_path / str(turn), tiny_encoder(batch=1, sequence=8), "coreml-nn") for turn in range(3)]
    assert found[0] == found[1] == found[2]


def test_the_checker_leaves_nothing_behind(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = (NodeProto.__hash__, usability_checker.get_producer_consumer_maps)
    check(tmp_path, models.cnn())
    assert (NodeProto.__hash__, usability_checker.get_producer_consumer_maps) == before
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("make", [models.cyclic, models.duplicate_names])
def test_a_graph_that_the_checker_cannot_read(tmp_path: Path, make: Any) -> None:
    with pytest.raises(StageError, match="cannot read this model"):
        check(tmp_path, make())


def test_a_graph_without_nodes(tmp_path: Path) -> None:
    model = models.make_model([], [models.value("x", [2])], [models.value("x", [2])])
    with pytest.raises(StageError, match="no nodes"):
        check(tmp_path, model)


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08")
    with pytest.raises(ModelError):
        call_stage("check_placement", tmp_path / "out", {"model": path}, provider="Some", **_OPTIONS["nnapi"])


def test_hostile_names_are_one_printable_line(tmp_path: Path) -> None:
    model = models.identity()
    model.graph.node[0].op_type = "Evil\x1b[31m\n" * 60
    (left,) = check(tmp_path, model).facts["left_nodes"]
    assert left["operator"].isprintable()
    assert len(left["operator"]) <= 200


def test_weights_are_not_needed(tmp_path: Path) -> None:
    path = models.save_external(models.cnn(batch=1), tmp_path / "model")
    (path.parent / "weights.bin").unlink()
    result = call_stage("check_placement", tmp_path / "out", {"model": path}, provider="Some", **_OPTIONS["nnapi"])
    assert result.facts["share"] == 1.0
    assert onnx.load(str(path), load_external_data=False).graph.initializer
