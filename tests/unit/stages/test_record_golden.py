"""Reference outputs of the original model: on samples, or on seeded inputs that fit."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, numpy_helper

from bundler.model.errors import ModelError, UsageError
from bundler.model.signature import ValueType
from bundler.onnxkit.elements import element_named
from bundler.onnxkit.equality import same_value
from bundler.onnxkit.golden import read_golden
from bundler.onnxkit.running import run_session
from bundler.onnxkit.value_files import ValueWriter, read_value
from tests.support import models
from tests.support.stage_calls import call_stage, record


def session_outputs(model: Path, feeds: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    outputs: list[Any] = onnxruntime.InferenceSession(str(model), options).run(None, feeds)
    return outputs


def digests(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refuse(model: Path, samples: Path, output: Path, **options: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        record(model, output, samples, **options)
    return caught.value


def test_outputs_are_those_of_the_original_model(tmp_path: Path) -> None:
    model = models.save(models.cnn(), tmp_path)
    golden = read_golden(record(model, tmp_path / "golden", seed=7))
    assert golden.synthetic
    assert golden.seed == 7
    assert len(golden.entries) == 8
    sample = golden.sample(1)
    np.testing.assert_allclose(sample.outputs["scores"], session_outputs(model, dict(sample.inputs))[0], rtol=1e-6)


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    model = models.save(models.mlp(), tmp_path)
    one, other = (record(model, tmp_path / name, seed=1).parent for name in ("one", "other"))
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(other) for path in other.rglob("*") if path.is_file())
    assert all((one / path).read_bytes() == (other / path).read_bytes() for path in files)
    third = record(model, tmp_path / "third", seed=2).parent
    assert (one / "000/in-0.bin").read_bytes() != (third / "000/in-0.bin").read_bytes()


def test_the_index_is_as_promised(tmp_path: Path) -> None:
    path = record(models.save(models.identity(), tmp_path), tmp_path / "golden", count=1)
    index = json.loads(path.read_text())
    values = np.fromfile(path.parent / "000/out-0.bin", np.float32).astype(np.float64)
    tensor = {"kind": "tensor", "type": "float32", "shape": [2, 3]}
    assert index == {
        "schema": 2,
        "synthetic": True,
        "seed": 0,
        "unstable_outputs": [],
        "outputs": [
            {
                "name": "y",
                "elements": 6,
                "numeric": True,
                "signal": pytest.approx(float(((values - values.mean()) ** 2).sum())),
                "signals": [pytest.approx(float(((values - values.mean()) ** 2).sum()))],
                "peak": pytest.approx(float(np.abs(values).max())),
                "quiet_peak": pytest.approx(float(np.abs(values).max())),
                "scores": False,
                "quantity": False,
                "unjudged": "",
            }
        ],
        "samples": [
            {
                "name": "seeded-000",
                "inputs": {"x": tensor | {"file": "000/in-0.bin"}},
                "outputs": {"y": tensor | {"file": "000/out-0.bin"}},
            }
        ],
    }


EVERY_KIND = [
    models.sequence_output,
    models.sequence_input,
    models.optional_input,
    models.optional_output,
    models.strings,
    models.zipmap,
    models.scaler_pipeline,
    models.if_model,
    models.loop_model,
    models.contrib,
    models.old_ir,
    models.overridable,
    models.token_encoder,
    models.bfloat16_model,
    models.unnamed_dimensions,
    models.local_function,
    lambda: models.zipmap(text_labels=True),
    lambda: models.passing(TensorProto.BFLOAT16),
    lambda: models.passing(TensorProto.FLOAT16),
    lambda: models.passing(TensorProto.FLOAT8E4M3FN),
    lambda: models.passing(TensorProto.UINT8),
    lambda: models.passing(TensorProto.INT64, []),
]


@pytest.mark.parametrize("make", EVERY_KIND)
def test_every_kind_of_value_is_recorded_and_reproduced(tmp_path: Path, make) -> None:
    model = models.save(make(), tmp_path)
    golden = record(model, tmp_path / "golden")
    found = call_stage("compare", tmp_path / "compare", {"model": model, "golden": golden})
    assert found.facts["samples"] == 8
    assert all(output["equal"] for output in found.facts["outputs"])


def test_ids_stay_inside_their_table_and_masks_end_in_padding(tmp_path: Path) -> None:
    golden = read_golden(record(models.save(models.token_encoder(vocabulary=3), tmp_path), tmp_path / "g", count=5))
    inputs = [golden.sample(index).inputs for index in range(5)]
    assert max(int(values["input_ids"].max()) for values in inputs) == 2
    masks = [values["attention_mask"] for values in inputs]
    assert any((mask == 1).all() for mask in masks)
    assert any((mask == 0).any() for mask in masks)
    assert {values["input_ids"].shape for values in inputs} == {(1, 16), (1, 256), (2, 8)}


def test_given_dimensions_are_taken(tmp_path: Path) -> None:
    model = models.save(models.token_encoder(), tmp_path)
    golden = read_golden(record(model, tmp_path / "golden", dimensions={"sequence": 5}))
    assert golden.sample(0).inputs["input_ids"].shape == (1, 5)
    with pytest.raises(UsageError, match="no dynamic dimension named 'sequins'"):
        record(model, tmp_path / "other", dimensions={"sequins": 5})


def test_random_outputs_are_unstable_and_others_are_not(tmp_path: Path) -> None:
    model = models.save(models.random_model(), tmp_path)
    result = call_stage("record_golden", tmp_path / "golden", {"model": model})
    assert result.facts["unstable_outputs"] == ["noise"]
    assert any(note.level == "warning" and "'noise'" in note.text for note in result.notes)
    found = call_stage("compare", tmp_path / "c", {"model": model, "golden": tmp_path / "golden" / "index.json"})
    assert [output["mismatch"] for output in found.facts["outputs"]] == [None, None]


def test_an_output_that_differs_only_late_is_unstable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first sample alone would not show it."""
    calls: list[int] = []

    def run(session: Any, feeds: Any) -> dict[str, Any]:
        outputs = run_session(session, feeds)
        if feeds["x"].max() > 8:
            calls.append(1)
            outputs["y"] = outputs["y"] + np.float32(len(calls))
        return outputs

    monkeypatch.setattr("bundler.stages.record_golden.run.run_session", run)
    archive = tmp_path / "all.npz"
    np.savez(archive, x=np.arange(5 * 6, dtype=np.float32).reshape(5, 2, 3))
    call = {"model": models.save(models.identity(), tmp_path), "samples": archive}
    assert call_stage("record_golden", tmp_path / "golden", call).facts["unstable_outputs"] == ["y"]
    single = call_stage("record_golden", tmp_path / "first", call, max_samples=1)
    assert single.facts["unstable_outputs"] == []


def test_samples_with_nan_are_accepted_with_a_warning(tmp_path: Path) -> None:
    values = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    values[1, 0, 0] = np.nan
    np.savez(tmp_path / "all.npz", x=values)
    model = models.save(models.identity(), tmp_path)
    call = {"model": model, "samples": tmp_path / "all.npz"}
    result = call_stage("record_golden", tmp_path / "golden", call)
    assert result.facts["non_finite_outputs"] == ["y"]
    assert result.facts["unstable_outputs"] == []
    assert result.notes[0].text == (
        "1 of 2 samples hold NaN or infinity (all-001: 'x' holds 1 NaN among 6 values): where the original model "
        "outputs one of them, an output must have it in the same places, and its other numbers are compared"
    )
    golden = tmp_path / "golden" / "index.json"
    assert call_stage("compare", tmp_path / "same", {"model": model, "golden": golden}).facts["outputs"][0]["equal"]
    other = models.save(_without_nan(), tmp_path / "other")
    found = call_stage("compare", tmp_path / "different", {"model": other, "golden": golden}).facts["outputs"][0]
    assert found["mismatch"]


def _without_nan() -> ModelProto:
    """As the identity, but that NaN becomes zero."""
    nodes = [
        models.helper.make_node("IsNaN", ["x"], ["bad"]),
        models.helper.make_node("Where", ["bad", "zero", "x"], ["y"]),
    ]
    shape = [2, 3]
    zero = (models.tensor("zero", np.zeros(1, np.float32)),)
    return models.make_model(nodes, [models.value("x", shape)], [models.value("y", shape)], zero)


@pytest.mark.parametrize("make", [models.nan_output, models.infinite_output])
def test_nan_and_infinity_are_recorded_with_a_warning(tmp_path: Path, make) -> None:
    model = models.save(make(), tmp_path)
    result = call_stage("record_golden", tmp_path / "golden", {"model": model})
    assert result.facts["non_finite_outputs"] == ["y"]
    assert any("NaN or infinity" in note.text for note in result.notes)
    found = call_stage("compare", tmp_path / "c", {"model": model, "golden": tmp_path / "golden" / "index.json"})
    assert found.facts["outputs"][0]["equal"]


@pytest.mark.parametrize("name", models.HOSTILE_NAMES)
def test_hostile_names_reach_no_path(tmp_path: Path, name: str) -> None:
    model = models.save(models.hostile(name), tmp_path / "model")
    golden = record(model, tmp_path / "golden", count=1)
    files = sorted(path.relative_to(golden.parent).as_posix() for path in golden.parent.rglob("*") if path.is_file())
    assert files == ["000/in-0.bin", "000/out-0.bin", "index.json"]
    assert list(read_golden(golden).sample(0).inputs) == [name]


def test_a_model_that_runs_on_no_seeded_input(tmp_path: Path) -> None:
    nodes = [models.helper.make_node("Reshape", ["x", "shape"], ["y"])]
    inputs = [models.value("x", ["n"]), models.value("shape", [2], TensorProto.INT64)]
    bad = models.make_model(nodes, inputs, [models.value("y", [7919, 2])])
    bad.graph.node.extend([models.helper.make_node("MatMul", ["y", "big"], ["z"])])
    bad.graph.output[0].CopyFrom(models.value("z", [7919, 1]))
    bad.graph.initializer.append(models.tensor("big", models.weights(7919, 1)))
    with pytest.raises(ModelError) as caught:
        record(models.save(bad, tmp_path), tmp_path / "golden")
    assert "--samples" in str(caught.value.hint)


def test_a_model_that_does_not_load_reveals_no_path(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot load the model") as caught:
        record(models.save(models.unknown_domain(), tmp_path), tmp_path / "golden")
    assert str(tmp_path) not in " ".join(caught.value.details)
    assert "com.example.custom:Sparkle" in caught.value.details[0]


def test_samples_from_a_folder_of_archives(tmp_path: Path) -> None:
    folder = tmp_path / "samples"
    folder.mkdir()
    for index in (10, 9):
        np.savez(folder / f"{index}.npz", x=np.full((2, 3), index, np.float32))
    result = call_stage(
        "record_golden", tmp_path / "golden", {"model": models.save(models.identity(), tmp_path), "samples": folder}
    )
    golden = read_golden(tmp_path / "golden" / "index.json")
    assert [entry["name"] for entry in golden.entries] == ["9", "10"]
    assert not golden.synthetic
    assert golden.seed is None
    assert [note.text.startswith("weak golden set: 2 samples") for note in result.notes] == [True]


def test_samples_with_a_leading_axis_and_a_limit(tmp_path: Path) -> None:
    archive = tmp_path / "all.npz"
    np.savez(archive, x=np.arange(5 * 6, dtype=np.float32).reshape(5, 2, 3))
    model = models.save(models.identity(), tmp_path)
    call = {"model": model, "samples": archive}
    result = call_stage("record_golden", tmp_path / "golden", call, max_samples=2)
    golden = read_golden(tmp_path / "golden" / "index.json")
    assert golden.sample(1).inputs["x"].tolist() == [[12, 13, 14], [15, 16, 17]]
    assert "2 of 5 samples, spread evenly" in result.notes[0].text


def test_what_is_taken_of_a_recorded_set_is_what_recording_it_gives(tmp_path: Path) -> None:
    archive = tmp_path / "all.npz"
    np.savez(archive, x=np.arange(5 * 6, dtype=np.float32).reshape(5, 2, 3))
    model = models.save(models.identity(), tmp_path)
    larger = call_stage(
        "record_golden", tmp_path / "larger", {"model": model, "samples": archive}, max_samples=4, travels=False
    )
    taken = call_stage(
        "record_golden", tmp_path / "taken", {"model": model, "recorded": tmp_path / "larger/index.json"}, max_samples=2
    )
    call_stage("record_golden", tmp_path / "direct", {"model": model, "samples": archive}, max_samples=2)
    found, direct = digests(tmp_path / "taken"), digests(tmp_path / "direct")
    # What is taken ships, and so has numbers for the names of files.
    renamed = direct["index.json"].replace(b'"all-000"', b'"sample-000"').replace(b'"all-002"', b'"sample-001"')
    assert found == {**direct, "index.json": renamed}
    assert larger.notes[0].text == "4 of 5 samples, spread evenly, judge the precision"
    assert taken.facts["samples"] == 2


def test_samples_from_onnx_test_data(tmp_path: Path) -> None:
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    parts = [np.ones((1, 3), np.float32), np.zeros((2, 3), np.float32)]
    (folder / "input_0.pb").write_bytes(numpy_helper.from_list(parts, "parts").SerializeToString())
    golden = read_golden(record(models.save(models.sequence_input(), tmp_path), tmp_path / "golden", tmp_path))
    assert golden.sample(0).outputs["y"].shape == (3, 3)


def test_text_samples(tmp_path: Path) -> None:
    archive = tmp_path / "words.npz"
    np.savez(archive, words=np.array(["één", "zwei"]))
    golden = read_golden(record(models.save(models.strings(), tmp_path), tmp_path / "golden", archive))
    assert golden.sample(0).outputs["same"].tolist() == ["één", "zwei"]


def test_samples_that_do_not_fit_are_all_named(tmp_path: Path) -> None:
    folder = tmp_path / "samples"
    folder.mkdir()
    np.savez(folder / "a.npz", imgae=np.zeros((1, 3, 16, 16), np.float32))
    np.savez(folder / "b.npz", image=np.zeros((1, 3, 8, 16), np.float32))
    np.savez(folder / "c.npz", image=np.zeros((1, 3, 16, 16), np.float64))
    error = refuse(models.save(models.cnn(), tmp_path), folder, tmp_path / "golden")
    assert error.message == "the samples do not fit the model"
    assert error.details == (
        "a: the model has no input 'imgae' (did you mean 'image'?)",
        "a: input 'image' is missing (float32[batch, 3, 16, 16])",
        "b: 'image': expected float32[batch, 3, 16, 16], got float32[1, 3, 8, 16]",
        "c: 'image': expected float32[batch, 3, 16, 16], got float64[1, 3, 16, 16]",
    )


def test_samples_that_are_no_samples(tmp_path: Path) -> None:
    model = models.save(models.identity(), tmp_path / "model")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no samples" in refuse(model, empty, tmp_path / "1").message
    assert "neither" in refuse(model, tmp_path / "missing", tmp_path / "2").message
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"no archive")
    assert "cannot be read" in refuse(model, broken, tmp_path / "3").message
    np.savez(tmp_path / "objects.npz", x=np.array([{}], dtype=object))
    assert "cannot be read" in refuse(model, tmp_path / "objects.npz", tmp_path / "4").message
    np.savez(tmp_path / "uneven.npz", x=np.zeros((2, 2, 3), np.float32), z=np.zeros(3))
    assert "same number" in refuse(model, tmp_path / "uneven.npz", tmp_path / "5").message


TYPES = st.sampled_from(
    [
        "float32",
        "float64",
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "int4",
        "uint4",
        "float4_e2m1fn",
        "int8",
        "uint64",
        "bool",
    ]
)


@settings(max_examples=60, deadline=None)
@given(name=TYPES, shape=st.lists(st.integers(0, 4), max_size=3), seed=st.integers(0, 99))
def test_every_element_type_survives_its_file(tmp_path_factory, name: str, shape: list[int], seed: int) -> None:
    element = element_named(name)
    least = -8 if name == "int4" else 0
    values = np.random.default_rng(seed).integers(least, least + 2 ** min(element.bits, 8), shape)
    array = values.astype(np.float32).astype(element.dtype)
    folder = tmp_path_factory.mktemp("values")
    entry = ValueWriter(folder, "000", "in").write(array, ValueType(element_type=name))
    assert (folder / entry["file"]).stat().st_size == -(-array.size * element.bits // 8)
    assert same_value(read_value(folder, entry), array)


def test_infinite_numbers_in_maps_are_words(tmp_path: Path) -> None:
    kind = ValueType(kind="map", key_type="str", element=ValueType(element_type="float32"))
    value = {"a": math.nan, "b": math.inf, "c": -math.inf, "d": 0.5}
    entry = ValueWriter(tmp_path, "000", "out").write(value, kind)
    assert entry["values"] == ["NaN", "Infinity", "-Infinity", 0.5]
    assert same_value(read_value(tmp_path, json.loads(json.dumps(entry))), value)
