"""A renamed model computes what the original does, and the golden set holds what the original computed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper

from bundler.model.errors import UsageError
from bundler.model.renaming import check_names, propose_names
from bundler.onnxkit.golden import read_golden
from bundler.onnxkit.signatures import model_signature
from bundler.stages.rename_values.run import rename_model
from tests.support import models
from tests.support.models import make_model, value
from tests.support.stage_calls import call_stage, compare

MODELS: dict[str, Callable[[], ModelProto]] = {
    name: getattr(models, name)
    for name in (
        *("cnn", "mlp", "token_encoder", "if_model", "choosing", "branch_weights", "loop_model", "overridable"),
        *("sequence_output", "local_function", "unnamed_dimensions", "bfloat16_model", "strings", "zipmap"),
    )
}


def rename(model: Path, names: dict[str, str], folder: Path) -> Path:
    result = call_stage("rename_values", folder, {"model": model}, names=names)
    assert result.entry is not None
    return folder / result.entry


def record_renamed(original: Path, renamed: Path, names: dict[str, str], folder: Path) -> Path:
    inputs = {"model": renamed, "original": original}
    result = call_stage("record_golden", folder, inputs, renamed=names)
    assert result.entry is not None
    return folder / result.entry


def names_of(model: ModelProto) -> list[str]:
    """All names that applications see: of inputs, outputs and dimensions."""
    signature = model_signature(model)
    ports = [port.name for port in (*signature.inputs, *signature.outputs)]
    return list(dict.fromkeys((*ports, *signature.symbols)))


@pytest.mark.parametrize(
    ("kind", "save"),
    [*((kind, models.save) for kind in MODELS), *((kind, models.save_external) for kind in ("cnn", "branch_weights"))],
)
def test_the_outputs_are_those_of_the_original(tmp_path: Path, kind: str, save: Callable[..., Path]) -> None:
    model = MODELS[kind]()
    names = {name: f"new_{number}" for number, name in enumerate(names_of(model))}
    original = save(model, tmp_path / "model")
    renamed = rename(original, names, tmp_path / "renamed")
    onnx.checker.check_model(renamed, full_check=kind != "local_function")
    assert set(names_of(onnx.load(renamed))) == set(names.values())
    golden = record_renamed(original, renamed, names, tmp_path / "golden")
    assert set(read_golden(golden).sample(0).outputs) <= set(names.values())
    assert compare(renamed, golden, tmp_path / "compare").equal


def test_the_golden_set_is_computed_by_the_original_model(tmp_path: Path) -> None:
    """A renamed model that went wrong is found: the reference is not its own answer."""
    original, names = models.save(models.mlp(), tmp_path / "one"), {"x": "features", "y": "answer"}
    wrong = models.mlp()
    for tensor in wrong.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) * 2, tensor.name))
    names = dict(zip(names_of(wrong), ("features", "answer", "batch"), strict=False))
    renamed = rename(models.save(wrong, tmp_path / "other"), names, tmp_path / "renamed")
    golden = record_renamed(original, renamed, names, tmp_path / "golden")
    found = compare(renamed, golden, tmp_path / "compare")
    assert not found.equal
    assert min(output.sqnr_db or 0.0 for output in found.outputs) < 10


def test_names_that_inner_values_have_already_are_theirs_no_longer(tmp_path: Path) -> None:
    """The branches have values called `doubled` and `negated`, and a weight called `last` is in the main graph."""
    for kind, names in (
        ("if_model", {"x": "doubled", "y": "negated", "positive": "x"}),
        ("choosing", {"x": "moved", "y": "last"}),
        ("branch_weights", {"x": "shift", "y": "scale_result", "positive": "chosen"}),
        ("loop_model", {"x": "carried", "y": "next"}),
    ):
        original = models.save(MODELS[kind](), tmp_path / kind)
        renamed = rename(original, names, tmp_path / kind / "renamed")
        onnx.checker.check_model(renamed, full_check=True)
        golden = record_renamed(original, renamed, names, tmp_path / kind / "golden")
        assert compare(renamed, golden, tmp_path / kind / "compare").equal, kind


def test_a_value_of_a_branch_may_hide_an_outer_one() -> None:
    """The branch defines its own `x`: that one keeps its name."""
    own = helper.make_graph(
        [
            helper.make_node("Constant", [], ["x"], value_floats=[1.0, 2.0, 3.0]),
            helper.make_node("Neg", ["x"], ["negated"]),
        ],
        "then",
        [],
        [value("negated", [3])],
    )
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["same"])], "else", [], [value("same", [3])])
    node = helper.make_node("If", ["c"], ["y"], then_branch=own, else_branch=other)
    model = make_model([node], [value("x", [3]), value("c", [], TensorProto.BOOL)], [value("y", [3])])
    rename_model(model, {"x": "image"})
    branches = {attribute.name: attribute.g for attribute in model.graph.node[0].attribute}
    assert [node.input[:] for node in branches["then_branch"].node] == [[], ["x"]]
    assert branches["else_branch"].node[0].input[:] == ["image"]


def test_an_input_that_is_an_output_has_one_name(tmp_path: Path) -> None:
    node = helper.make_node("Neg", ["x"], ["y"])
    model = make_model([node], [value("x", ["n", 3])], [value("y", ["n", 3]), value("x", ["n", 3])])
    original, names = models.save(model, tmp_path), {"x": "y", "y": "x", "n": "rows"}
    renamed = rename(original, names, tmp_path / "renamed")
    golden = record_renamed(original, renamed, names, tmp_path / "golden")
    assert compare(renamed, golden, tmp_path / "compare").equal
    sample = read_golden(golden).sample(0)
    np.testing.assert_array_equal(sample.inputs["y"], sample.outputs["y"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), kind=st.sampled_from(["if_model", "choosing", "loop_model", "mlp"]))
def test_any_names_that_are_accepted_keep_the_outputs(tmp_path: Path, data: st.DataObject, kind: str) -> None:
    """Names are drawn from those that occur in the model, so that most collide with something."""
    model = MODELS[kind]()
    inner = {name for graph in (model.graph,) for node in graph.node for name in (*node.input, *node.output) if name}
    pool = sorted(inner | set(names_of(model)) | {"doubled", "moved", "carried", "next", "fresh"})
    old = data.draw(st.lists(st.sampled_from(names_of(model)), unique=True, min_size=1))
    names = dict(zip(old, data.draw(st.permutations(pool)), strict=False))
    try:
        check_names(model_signature(model), names)
    except UsageError:
        return
    folder = tmp_path / "drawn"
    shutil.rmtree(folder, ignore_errors=True)
    original = models.save(model, folder)
    renamed = rename(original, names, folder / "renamed")
    onnx.checker.check_model(renamed, full_check=True)
    golden = record_renamed(original, renamed, names, folder / "golden")
    assert compare(renamed, golden, folder / "compare").equal


def test_samples_by_their_old_names_are_told_the_new_ones(tmp_path: Path) -> None:
    model, names = models.save(models.identity(), tmp_path), {"x": "image"}
    renamed = rename(model, names, tmp_path / "renamed")
    np.savez(tmp_path / "samples.npz", x=np.ones((2, 2, 3), np.float32))
    inputs = {"model": renamed, "original": model, "samples": tmp_path / "samples.npz"}
    with pytest.raises(UsageError) as caught:
        call_stage("record_golden", tmp_path / "golden", inputs, renamed=names)
    assert caught.value.details == ("'x' was renamed to 'image'",)
    assert "new names" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"imgae": "x"}, "no input, output or dynamic dimension 'imgae'"),
        ({"image": "scores"}, "two inputs or outputs would have the name 'scores': 'image' and 'scores'"),
        ({"image": "__proto__"}, "no input or output can have the name '__proto__'"),
        ({"image": "y", "scores": "y"}, "two inputs or outputs would have the name 'y'"),
    ],
)
def test_what_cannot_be_renamed_is_refused(names: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_names(model_signature(models.cnn()), names)


def test_two_dimensions_do_not_become_one() -> None:
    model = make_model([helper.make_node("Neg", ["x"], ["y"])], [value("x", ["n", "m"])], [value("y", ["n", "m"])])
    with pytest.raises(UsageError, match="two dimensions would have the name 'm'"):
        check_names(model_signature(model), {"n": "m"})
    check_names(model_signature(model), {"n": "m", "m": "n"})


def test_identifiers_are_proposed_for_names_that_are_none() -> None:
    names = ["input:0", "save_infer_model/scale_0.tmp_1", "other/scale_0.tmp_1", "plain", "3d"]
    sizes = ["unk__214", "unk__7", "2*unk__7", "p2o.DynamicDimension.0", "batch"]
    inputs = [value(name, [size]) for name, size in zip(names, sizes, strict=True)]
    model = make_model([helper.make_node("Identity", ["plain"], ["y"])], inputs, [value("y", [2])])
    proposed = propose_names(model_signature(model))
    assert proposed == {
        "input:0": "input",
        "save_infer_model/scale_0.tmp_1": "scale_0_tmp_1",
        "other/scale_0.tmp_1": "scale_0_tmp_1_1",
        "3d": "value_3d",
        "unk__214": "size",
        "unk__7": "size_1",
        "p2o.DynamicDimension.0": "p2o_DynamicDimension_0",
    }
    check_names(model_signature(model), proposed)
