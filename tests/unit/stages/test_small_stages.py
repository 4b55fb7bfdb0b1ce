"""Fixed dimensions, required operators, and the simplifier."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnxruntime.tools.reduced_build_config_parser import parse_config

from bundler.model.errors import StageError, UsageError
from tests.support import models
from tests.support.stage_calls import call_stage, compare, record


@pytest.mark.parametrize("save", [models.save, models.save_external])
def test_fixed_dimensions_reach_inputs_and_outputs(tmp_path: Path, save) -> None:
    model = save(models.cnn(), tmp_path / "model")
    result = call_stage("fix_dimensions", tmp_path / "out", {"model": model}, dimensions={"batch": 4})
    fixed = onnx.load(tmp_path / "out" / "model.onnx")
    assert [dim.dim_value for dim in fixed.graph.input[0].type.tensor_type.shape.dim] == [4, 3, 16, 16]
    assert [dim.dim_value for dim in fixed.graph.output[0].type.tensor_type.shape.dim] == [4, 5]
    assert result.facts["signature"]["outputs"][0]["type"]["shape"] == [4, 5]
    golden = record(model, tmp_path / "golden", dimensions={"batch": 4})
    assert compare(tmp_path / "out" / "model.onnx", golden, tmp_path / "compare").equal


def unnamed_cnn() -> onnx.ModelProto:
    """As PaddlePaddle exports: sizes have no names, and those of outputs are -1."""
    model = models.cnn()
    dims = model.graph.input[0].type.tensor_type.shape.dim
    for axis in (0, 2, 3):
        dims[axis].dim_param = "?"
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = -1
    return model


def test_sizes_without_a_name_are_fixed_where_they_stand(tmp_path: Path) -> None:
    model = models.save(unnamed_cnn(), tmp_path / "model")
    shapes = {"image": [4, None, 16, 16]}
    result = call_stage("fix_dimensions", tmp_path / "out", {"model": model}, shapes=shapes)
    fixed = onnx.load(tmp_path / "out" / "model.onnx")
    onnx.checker.check_model(fixed, full_check=True)
    assert [dim.dim_value for dim in fixed.graph.input[0].type.tensor_type.shape.dim] == [4, 3, 16, 16]
    assert result.facts["signature"]["outputs"][0]["type"]["shape"] == [4, 5]
    golden = record(model, tmp_path / "golden", shapes=shapes)
    assert compare(tmp_path / "out" / "model.onnx", golden, tmp_path / "compare").equal


@pytest.mark.parametrize(
    "shapes", [{"y": [1]}, {"image": [4, 3, 16]}, {"image": [4, 3, 16, 16]}, {"image": [0, None, None, None]}]
)
def test_shapes_that_an_input_cannot_have_are_refused(tmp_path: Path, shapes: dict[str, list[int | None]]) -> None:
    model = models.save(unnamed_cnn(), tmp_path)
    with pytest.raises(UsageError, match="the shapes cannot be fixed"):
        call_stage("fix_dimensions", tmp_path / "out", {"model": model}, shapes=shapes)


def test_external_weights_go_along_as_real_files(tmp_path: Path) -> None:
    model = models.save_external(models.mlp(hidden=512), tmp_path / "model")
    call_stage("fix_dimensions", tmp_path / "out", {"model": model}, dimensions={"batch": 1})
    optimized = onnx.load(tmp_path / "out" / "model.onnx")
    assert (tmp_path / "out" / "model.onnx.data").is_file()
    plain = models.mlp(hidden=512)
    assert [models.numpy_helper.to_array(tensor).tobytes() for tensor in optimized.graph.initializer] == [
        models.numpy_helper.to_array(tensor).tobytes() for tensor in plain.graph.initializer
    ]


def test_unknown_dimensions_get_a_suggestion(tmp_path: Path) -> None:
    model = models.save(models.cnn(), tmp_path)
    with pytest.raises(UsageError) as caught:
        call_stage("fix_dimensions", tmp_path / "out", {"model": model}, dimensions={"bacth": 1, "batch": 0})
    assert caught.value.details == (
        "no dimension 'bacth' (did you mean 'batch'?)",
        "'batch' cannot have the size 0",
        "the model's dynamic dimensions are: 'batch'",
    )


def test_required_operators_are_those_that_run(tmp_path: Path) -> None:
    result = call_stage("derive_operators", tmp_path / "out", {"model": models.save(models.token_encoder(), tmp_path)})
    assert result.entry == "required_operators.config"
    text = (tmp_path / "out" / result.entry).read_text()
    assert str(tmp_path) not in text
    required, types = parse_config(str(tmp_path / "out" / result.entry), enable_type_reduction=True)
    assert required["ai.onnx"][13] == {"Gather", "Cast", "Unsqueeze", "ReduceMean"}
    assert types.is_typed_registration_needed("ai.onnx", "Mul", "float")
    found = {row["operator"]: row for row in result.facts["operators"]}
    assert found["Cast"] == {
        "domain": "ai.onnx",
        "opset": 13,
        "operator": "Cast",
        "types": {"inputs": {"0": ["int64_t"]}, "outputs": {"0": ["float"]}},
    }


def test_operators_of_a_model_in_ort_format_are_the_same(tmp_path: Path) -> None:
    model = models.save(models.mlp(width=64, hidden=128), tmp_path)
    call_stage("convert_ort", tmp_path / "ort", {"model": model})
    one = call_stage("derive_operators", tmp_path / "one", {"model": model})
    two = call_stage("derive_operators", tmp_path / "two", {"model": tmp_path / "ort" / "model.ort"})
    assert one.facts == two.facts


@pytest.mark.parametrize("make", [models.redundant, models.cnn, models.mlp, models.if_model])
def test_the_simplifier_keeps_the_outputs(tmp_path: Path, make) -> None:
    model = models.save(make(), tmp_path)
    golden = record(model, tmp_path / "golden")
    result = call_stage("simplify", tmp_path / "out", {"model": model})
    assert result.facts["nodes_after"] <= result.facts["nodes_before"]
    assert compare(tmp_path / "out" / "model.onnx", golden, tmp_path / "compare").equal


def test_the_simplifier_takes_external_data(tmp_path: Path) -> None:
    model = models.save_external(models.cnn(), tmp_path / "model")
    golden = record(model, tmp_path / "golden")
    call_stage("simplify", tmp_path / "out", {"model": model})
    assert compare(tmp_path / "out" / "model.onnx", golden, tmp_path / "compare").equal


def test_what_the_simplifier_cannot_take_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="the simplifier onnxscript cannot process this model"):
        call_stage("simplify", tmp_path / "out", {"model": models.save(models.zipmap(), tmp_path)})
