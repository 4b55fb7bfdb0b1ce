"""What NNCF is handed: opset 13 or later, weights that are weights, every node with a name of its own."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from bundler.model.errors import StageError, UsageError
from bundler.onnxkit.structure import read_structure
from bundler.stages.quantize_nncf.preparing import check_input, find_excluded, prepare_model, standard_opset
from bundler.stages.quantize_nncf.spec import Options
from tests.support import models


def old_cnn(opset: int = 11) -> onnx.ModelProto:
    model = models.cnn()
    model.opset_import[0].version = opset
    return model


def batch_normalized(*, names: tuple[str, str] = ("conv", "norm")) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Constant", [], ["w"], value=models.tensor("w", models.weights(4, 3, 3, 3))),
        helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], name=names[0]),
        helper.make_node("BatchNormalization", ["c", "s", "b", "m", "v"], ["y"], name=names[1]),
    ]
    parts = tuple(models.tensor(name, np.abs(models.weights(4, seed=seed)) + 1) for seed, name in enumerate("sbmv"))
    return models.make_model(nodes, [models.value("x", [1, 3, 8, 8])], [models.value("y", [1, 4, 6, 6])], parts)


def prepare(model: onnx.ModelProto, folder: Path, **options: object) -> onnx.ModelProto:
    return prepare_model(models.save(model, folder), folder, Options(**options))  # type: ignore[arg-type]


def test_an_old_model_is_raised(tmp_path: Path) -> None:
    assert standard_opset(prepare(old_cnn(), tmp_path)) == 13


def test_a_newer_model_keeps_its_opset(tmp_path: Path) -> None:
    assert standard_opset(prepare(models.cnn(), tmp_path)) == models.OPSET


def test_an_old_model_is_refused_where_it_may_not_be_raised(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="has opset 11, and per-channel quantisation requires 13"):
        prepare(old_cnn(), tmp_path, raise_opset=False)


@pytest.mark.parametrize(("operator", "inputs"), [("NoSuchOperator", ["x"]), ("Resize", ["x", "nowhere"])])
def test_what_cannot_be_raised_is_refused_with_the_converters_reason(
    tmp_path: Path, operator: str, inputs: list[str]
) -> None:
    nodes = [helper.make_node(operator, inputs, ["y"])]
    model = models.make_model(nodes, [models.value("x", [2, 2])], [models.value("y", None)], opset=10)
    with pytest.raises(StageError, match="has opset 10, and cannot be converted to 13") as caught:
        prepare(model, tmp_path)
    assert caught.value.details[0]


def test_weights_listed_as_inputs_are_weights(tmp_path: Path) -> None:
    model = prepare(models.old_ir(), tmp_path, preprocess=False)
    assert [value.name for value in model.graph.input] == ["x"]
    onnx.checker.check_model(model)


def test_a_default_that_the_caller_may_override_stays_an_input(tmp_path: Path) -> None:
    model = prepare(models.overridable(), tmp_path)
    assert [value.name for value in model.graph.input] == ["x", "scale"]


def test_constants_become_weights_and_normalisation_goes_into_the_convolution(tmp_path: Path) -> None:
    model = prepare(batch_normalized(), tmp_path)
    assert [(node.op_type, node.name) for node in model.graph.node] == [("Conv", "conv")]
    assert len(model.graph.initializer) == 2


def test_without_preprocessing_the_graph_stays(tmp_path: Path) -> None:
    model = prepare(batch_normalized(), tmp_path, preprocess=False)
    assert [node.op_type for node in model.graph.node] == ["Constant", "Conv", "BatchNormalization"]


def test_matrix_products_keep_their_name_where_something_is_kept_out(tmp_path: Path) -> None:
    operators = [{node.op_type for node in prepare(models.mlp(), tmp_path / name, **options).graph.node}  # type: ignore[arg-type]
                 for name, options in (("free", {}), ("kept", {"exclude_operators": ("MatMul",)}))]  # fmt: skip
    assert "Gemm" in operators[0]
    assert "Gemm" not in operators[1]


def test_the_standard_operators_are_imported_first(tmp_path: Path) -> None:
    """NNCF takes the first import for the model's opset."""
    model = models.cnn()
    model.opset_import.insert(0, helper.make_opsetid("com.example", 1))
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    assert [opset.domain for opset in prepare(model, tmp_path).opset_import] == [""]


def test_two_nodes_of_one_name_get_two(tmp_path: Path) -> None:
    model = prepare(batch_normalized(names=("same", "same")), tmp_path, preprocess=False)
    names = [node.name for node in model.graph.node]
    assert names[1] == "same"
    assert len(set(names)) == len(names)


def test_a_shared_name_keeps_out_all_that_have_it() -> None:
    model = batch_normalized(names=("same", "same"))
    assert find_excluded(model, Options(exclude_nodes=("same",))) == ("same", "same_2")


def test_names_that_are_not_there_are_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        find_excluded(batch_normalized(), Options(exclude_nodes=("konv",), exclude_operators=("Convolution",)))
    assert caught.value.details == ("no node 'konv' (did you mean 'conv'?)", "no operator 'Convolution'")


@pytest.mark.parametrize("name", models.HOSTILE_NAMES)
def test_hostile_names_are_shown_short_and_escaped(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_excluded(batch_normalized(), Options(exclude_nodes=(name,)))
    assert caught.value.details[0].isprintable()
    assert len(caught.value.details[0]) < 200


@pytest.mark.parametrize("operator", ["QuantizeLinear", "QLinearConv", "MatMulInteger", "DynamicQuantizeLinear"])
def test_what_is_quantised_already_is_refused(operator: str) -> None:
    model = models.make_model([helper.make_node(operator, ["x"], ["y"])], [models.value("x", [1])], [])
    with pytest.raises(StageError, match="quantised already") as caught:
        check_input(model)
    assert operator in caught.value.details[0]


def test_more_than_two_gigabytes_are_refused_before_they_are_read(tmp_path: Path) -> None:
    model = models.cnn()
    large = model.graph.initializer.add(name="large", data_type=TensorProto.FLOAT, dims=[2**29 + 1])
    large.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "nowhere.bin"), ("offset", "0"), ("length", str(4 * (2**29 + 1)))):
        large.external_data.add(key=key, value=value)
    with pytest.raises(StageError, match="more than 2 GB") as caught:
        check_input(read_structure(models.save(model, tmp_path)))
    assert "weights-8bit" in (caught.value.hint or "")


def test_preparing_twice_gives_equal_bytes_and_leaves_nothing_behind(tmp_path: Path) -> None:
    digests = {
        hashlib.sha256(prepare(old_cnn(), tmp_path).SerializeToString(deterministic=True)).hexdigest() for _ in range(2)
    }
    assert len(digests) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
