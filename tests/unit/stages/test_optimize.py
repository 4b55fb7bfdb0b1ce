"""The optimised model: equal outputs, the same bytes every time, correct on every CPU of the target."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundler.model.errors import StageError
from bundler.model.gates import check_gate
from bundler.model.runtime import Gate, Tolerance
from bundler.onnxkit.canonical import tensor_data
from bundler.stages.optimize.run import _check
from tests.support import models
from tests.support.recurrent_models import make_voice
from tests.support.stage_calls import call_stage, compare, record
from tests.unit.stages.shuffling import shuffle

KINDS = [
    models.cnn,
    models.mlp,
    models.token_encoder,
    models.if_model,
    models.branch_weights,
    models.loop_model,
    models.local_function,
    models.contrib,
    models.redundant,
    models.old_ir,
    models.overridable,
    models.zipmap,
    models.scaler_pipeline,
    models.sequence_output,
    models.sequence_input,
    models.optional_input,
    models.optional_output,
    models.strings,
    models.random_model,
    models.nan_output,
    models.bfloat16_model,
]


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("level", ["none", "basic", "extended"])
@pytest.mark.parametrize("make", KINDS)
def test_outputs_stay_within_the_gate(tmp_path: Path, make, level: str) -> None:
    model = models.save(make(), tmp_path / "model")
    golden = record(model, tmp_path / "golden")
    call_stage("optimize", tmp_path / "optimized", {"model": model}, level=level, external_threshold=64)
    found = compare(tmp_path / "optimized" / "model.onnx", golden, tmp_path / "compare")
    assert check_gate(found, Gate(default=Tolerance(absolute=1e-5, relative=1e-5, sqnr_db=90)), ("noise",)) == ()


def test_facts_count_nodes_and_bytes(tmp_path: Path) -> None:
    result = call_stage("optimize", tmp_path / "out", {"model": models.save(models.redundant(), tmp_path)})
    assert (result.facts["nodes_before"], result.facts["nodes_after"]) == (5, 2)
    assert result.facts["operators"] == {"Mul": 1, "Relu": 1}
    assert result.facts["bytes"] == (tmp_path / "out" / "model.onnx").stat().st_size


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), kind=st.sampled_from([models.cnn, models.mlp, models.if_model, models.loop_model]))
def test_how_a_model_was_written_down_does_not_matter(tmp_path_factory, seed: int, kind) -> None:
    folder = tmp_path_factory.mktemp("forms")
    model = kind()
    results = []
    for name, form in (("plain", model), ("shuffled", shuffle(model, seed))):
        onnx.checker.check_model(form)
        path = models.save(form, folder / name)
        call_stage("optimize", folder / f"{name}-out", {"model": path}, external_threshold=64, level="basic")
        results.append(files_of(folder / f"{name}-out"))
    assert results[0] == results[1]


def test_a_canonical_model_is_its_own_canonical_form(tmp_path: Path) -> None:
    model = models.save(models.mlp(), tmp_path)
    call_stage("optimize", tmp_path / "one", {"model": model}, level="none")
    call_stage("optimize", tmp_path / "two", {"model": tmp_path / "one" / "model.onnx"}, level="none")
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_large_weights_leave_the_model_at_page_starts(tmp_path: Path) -> None:
    model = models.save(models.mlp(width=64, hidden=128), tmp_path)
    call_stage("optimize", tmp_path / "out", {"model": model}, external_threshold=1024)
    optimized = onnx.load(tmp_path / "out" / "model.onnx", load_external_data=False)
    external = [
        {entry.key: entry.value for entry in tensor.external_data}
        for tensor in optimized.graph.initializer
        if tensor.external_data
    ]
    assert len(external) == 2
    assert all(entry["location"] == "model.onnx.data" and int(entry["offset"]) % 4096 == 0 for entry in external)
    assert sorted(files_of(tmp_path / "out")) == ["model.onnx", "model.onnx.data"]


def test_equal_weights_are_stored_once(tmp_path: Path) -> None:
    same = models.weights(32, 32)
    nodes = [models.helper.make_node("MatMul", [name, f"w{name}"], [f"m{name}"]) for name in "ab"]
    inputs = [models.value(name, [1, 32]) for name in "ab"]
    outputs = [models.value(f"m{name}", [1, 32]) for name in "ab"]
    model = models.make_model(nodes, inputs, outputs, (models.tensor("wa", same), models.tensor("wb", same)))
    path = models.save(model, tmp_path)
    call_stage("optimize", tmp_path / "out", {"model": path}, external_threshold=64, level="none")
    assert (tmp_path / "out" / "model.onnx.data").stat().st_size == same.nbytes


@pytest.mark.parametrize("level", ["none", "extended"])
@pytest.mark.parametrize("lay", [os.link, os.symlink])
def test_weights_in_branches_open_where_installers_make_links(tmp_path: Path, lay, level: str) -> None:
    """ONNX Runtime maps linked weights of the main graph, and refuses those of nested graphs."""
    model = models.save_external(models.branch_weights(), tmp_path / "model")
    call_stage("optimize", tmp_path / "out", {"model": model}, external_threshold=64, level=level)
    assert sorted(files_of(tmp_path / "out")) == ["model.onnx", "model.onnx.data"]
    (tmp_path / "installed").mkdir()
    for path in (tmp_path / "out").iterdir():
        lay(path, tmp_path / "installed" / path.name)
    onnxruntime.InferenceSession(tmp_path / "installed" / "model.onnx", providers=["CPUExecutionProvider"])


def test_weights_in_branches_that_no_model_file_holds_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensor_data, "PROTOBUF_LIMIT", 4095)
    model = models.save_external(models.branch_weights(), tmp_path)
    with pytest.raises(StageError, match=r"branches and loop bodies have 4 kB") as caught:
        call_stage("optimize", tmp_path / "out", {"model": model}, external_threshold=64, level="none")
    assert "in its main graph" in (caught.value.hint or "")


@pytest.mark.parametrize("threshold", [None, 64])
def test_external_and_internal_weights_end_in_the_same_files(tmp_path: Path, threshold: int | None) -> None:
    inside = models.save(models.cnn(), tmp_path / "inside")
    outside = models.save_external(models.cnn(), tmp_path / "outside")
    for path in (inside, outside):
        call_stage("optimize", tmp_path / f"{path.parent.name}-out", {"model": path}, external_threshold=threshold)
    assert files_of(tmp_path / "inside-out") == files_of(tmp_path / "outside-out")


@pytest.mark.parametrize("make", [models.cnn, models.redundant, models.old_ir, models.if_model])
def test_a_large_file_is_never_loaded_and_ends_the_same(tmp_path: Path, make, monkeypatch: pytest.MonkeyPatch) -> None:
    model = models.save(make(), tmp_path)
    call_stage("optimize", tmp_path / "one", {"model": model}, external_threshold=64)
    monkeypatch.setattr("bundler.stages.optimize.run._EMBEDDED_LIMIT", 0)
    monkeypatch.setattr("bundler.onnxkit.slim.MAX_KEPT_PAYLOAD", 16)
    call_stage("optimize", tmp_path / "two", {"model": model}, external_threshold=64)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_weights_listed_as_inputs_become_plain_weights(tmp_path: Path) -> None:
    result = call_stage("optimize", tmp_path / "out", {"model": models.save(models.old_ir(), tmp_path)})
    optimized = onnx.load(tmp_path / "out" / "model.onnx")
    assert [value.name for value in optimized.graph.input] == ["x"]
    assert "listed as inputs" in result.notes[0].text


def test_defaults_of_inputs_stay_open_to_the_caller(tmp_path: Path) -> None:
    call_stage("optimize", tmp_path / "out", {"model": models.save(models.overridable(), tmp_path)})
    optimized = onnx.load(tmp_path / "out" / "model.onnx")
    assert [value.name for value in optimized.graph.input] == ["x", "scale"]
    assert [tensor.name for tensor in optimized.graph.initializer] == ["scale"]


@pytest.mark.parametrize("kind", [models.mlp, models.token_encoder, models.if_model, models.contrib])
def test_without_convolutions_the_full_level_gives_the_same_bytes(tmp_path: Path, kind) -> None:
    model = models.save(kind(), tmp_path)
    saved = [call_stage("optimize", tmp_path / level, {"model": model}, level=level) for level in ("extended", "all")]
    one, other = ((tmp_path / level / "model.onnx").read_bytes() for level in ("extended", "all"))
    assert one == other
    assert saved[0].facts["operators"] == saved[1].facts["operators"]


def test_layouts_of_one_cpu_class_are_refused() -> None:
    model = models.identity()
    optimized = models.identity()
    optimized.graph.node[0].domain = "com.microsoft.nchwc"
    with pytest.raises(StageError, match="one CPU class"):
        _check(model, optimized)


def test_a_lost_input_is_refused() -> None:
    with pytest.raises(StageError, match="inputs or outputs changed"):
        _check(models.identity("x"), models.identity("z"))


@pytest.mark.parametrize("name", models.HOSTILE_NAMES)
def test_hostile_names_stay_the_interface(tmp_path: Path, name: str) -> None:
    call_stage("optimize", tmp_path / "out", {"model": models.save(models.hostile(name), tmp_path)})
    assert onnx.load(tmp_path / "out" / "model.onnx").graph.input[0].name == name


@pytest.mark.parametrize("level", ["basic", "extended"])
def test_branches_that_do_not_run_at_the_fixed_sizes_do_not_break_the_others(tmp_path: Path, level: str) -> None:
    model = models.save(make_voice(), tmp_path / "model")
    call_stage("fix_dimensions", tmp_path / "fixed", {"model": model}, dimensions={"samples": 8})
    result = call_stage("optimize", tmp_path / "out", {"model": tmp_path / "fixed" / "model.onnx"}, level=level)
    golden = record(model, tmp_path / "golden", dimensions={"samples": 8})
    found = compare(tmp_path / "out" / "model.onnx", golden, tmp_path / "compare")
    assert check_gate(found, Gate(default=Tolerance(absolute=1e-5, relative=1e-5, sqnr_db=90)), ()) == ()
    assert ["not folded ahead of time" in note.text for note in result.notes] == [True]


@pytest.mark.parametrize("large", [False, True])
def test_conditions_on_sizes_in_the_file_become_their_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, large: bool
) -> None:
    """The condition of the rate is open, and so is all in the branch that does not run at eight samples."""
    if large:
        monkeypatch.setattr("bundler.stages.optimize.run._EMBEDDED_LIMIT", 0)
    model = make_voice()
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 8
    source = models.save(model, tmp_path / "model")
    result = call_stage("optimize", tmp_path / "out", {"model": source}, level="basic")
    assert result.facts["operators"]["If"] == 2
    assert result.facts["disabled_optimizers"] == ["ConstantFolding"]
    found = compare(tmp_path / "out" / "model.onnx", record(source, tmp_path / "golden"), tmp_path / "compare")
    assert check_gate(found, Gate(default=Tolerance(absolute=1e-5, relative=1e-5, sqnr_db=90)), ()) == ()
