"""Golden sets of models whose sizes are given as ranges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from bundler.model.errors import ModelError, UsageError
from bundler.onnxkit.golden import read_golden
from tests.support import models
from tests.support.stage_calls import call_stage, record

BATCH: dict[str, Any] = {"batch": {"least": 2, "best": 3, "most": 5}}


def shapes_of(index: Path) -> set[tuple[int, ...]]:
    golden = read_golden(index)
    samples = (golden.sample(place) for place in range(len(golden.entries)))
    return {value.shape for sample in samples for value in sample.inputs.values()}


def test_seeded_inputs_stay_within_and_reach_both_ends(tmp_path: Path) -> None:
    model = models.save(models.cnn(), tmp_path / "model")
    index = record(model, tmp_path / "golden", ranges=BATCH)
    assert shapes_of(index) == {(size, 3, 16, 16) for size in (2, 3, 5)}


def test_a_size_without_a_name_has_its_range_by_its_place(tmp_path: Path) -> None:
    model = models.save(models.identity(shape=[None, 4]), tmp_path / "model")
    index = record(model, tmp_path / "golden", ranges={"x[0]": {"least": 1, "best": 6, "most": 6}})
    assert shapes_of(index) == {(1, 4), (6, 4)}


def test_calibration_data_stay_within(tmp_path: Path) -> None:
    model = models.save(models.cnn(), tmp_path / "model")
    call_stage("prepare_data", tmp_path / "out", {"model": model}, kind="synthetic", ranges=BATCH)
    assert {shape[0] for shape in shapes_of(tmp_path / "out" / "index.json")} == {2, 3, 5}


def test_samples_outside_of_the_range_are_refused(tmp_path: Path) -> None:
    model = models.save(models.cnn(), tmp_path / "model")
    (tmp_path / "samples").mkdir()
    np.savez(tmp_path / "samples" / "one.npz", image=models.weights(8, 3, 16, 16))
    with pytest.raises(UsageError) as caught:
        record(model, tmp_path / "golden", tmp_path / "samples", ranges=BATCH)
    assert "axis 0 is 8, outside the given range 2 to 5" in caught.value.details[0]


def test_a_model_that_does_not_run_at_its_given_sizes_says_so(tmp_path: Path) -> None:
    model = models.save(models.identity(shape=[None, None]), tmp_path / "model")
    with pytest.raises(ModelError) as caught:
        record(model, tmp_path / "golden", shapes={"x": [40000, 40000]})
    assert (caught.value.hint or "").startswith("the model may not run at its fixed sizes: try other sizes")


def test_an_output_of_other_sizes_than_declared_is_said(tmp_path: Path) -> None:
    model = models.save(models.labels(rows=1), tmp_path / "model")
    result = call_stage("record_golden", tmp_path / "golden", {"model": model})
    assert result.facts["contradicted"] == {"label": [None]}
    (text,) = (note.text for note in result.notes if "declares" in note.text)
    assert text == "the model declares 'label' as int64[1], and gives other sizes; the bundle describes it as int64[?]"


def test_an_output_that_is_not_of_the_size_that_it_is_named_after_is_found(tmp_path: Path) -> None:
    nodes = [helper.make_node("Concat", ["x", "x"], ["y"], axis=0)]
    model = models.make_model(nodes, [models.value("x", ["n", 4])], [models.value("y", ["n", 4])])
    saved = models.save(model, tmp_path / "model")
    for name, sizes in (("open", {}), ("fixed", {"n": 1})):
        result = call_stage("record_golden", tmp_path / name, {"model": saved}, dimensions=sizes)
        assert result.facts["contradicted"] == {"y": [None, 4]}


def test_inputs_whose_sizes_share_a_name_and_differ_are_said(tmp_path: Path) -> None:
    nodes = [helper.make_node("Concat", ["a", "b"], ["y"], axis=0)]
    inputs = [models.value("a", ["n", 4]), models.value("b", ["n", 4])]
    model = models.save(models.make_model(nodes, inputs, [models.value("y", ["m", 4])]), tmp_path / "model")
    (tmp_path / "samples").mkdir()
    np.savez(tmp_path / "samples" / "one.npz", a=models.weights(3, 4), b=models.weights(2, 4))
    result = call_stage("record_golden", tmp_path / "golden", {"model": model, "samples": tmp_path / "samples"})
    assert result.facts["contradicted"] == {"a": [None, 4], "b": [None, 4]}
    text = next(note.text for note in result.notes if "declares" in note.text)
    assert text.startswith(
        "the model declares 'a' as float32[n, 4], and runs where sizes of one name differ; the bundle"
    )


def test_sizes_of_one_kind_that_need_not_be_equal_differ(tmp_path: Path) -> None:
    """A graph's nodes and edges had as many rows in every sample: nothing showed if one was taken for the other."""
    index = record(models.save(sums("nodes", "edges"), tmp_path / "model"), tmp_path / "golden")
    rows = rows_of(index)
    assert any(nodes == edges for nodes, edges in rows)
    assert any(nodes != edges for nodes, edges in rows)


def test_sizes_that_must_be_equal_stay_so(tmp_path: Path) -> None:
    names = {"a": ["first", 4], "b": ["second", 4]}
    model = models.make_model(
        [helper.make_node("Concat", ["a", "b"], ["y"], axis=1)],
        [models.value(name, shape) for name, shape in names.items()],
        [models.value("y", ["first", 8])],
    )
    index = record(models.save(model, tmp_path / "model"), tmp_path / "golden")
    assert {first == second for first, second in rows_of(index)} == {True}
    assert len(set(rows_of(index))) > 1


def test_numbers_of_an_exporter_do_not_say_which_sizes_may_differ(tmp_path: Path) -> None:
    index = record(models.save(sums("Dim.0", "Dim.1"), tmp_path / "model"), tmp_path / "golden")
    assert {first == second for first, second in rows_of(index)} == {True}


def sums(*names: str) -> ModelProto:
    """The sum of each input over its rows, and one input for each name of a size."""
    nodes = [helper.make_node("ReduceSum", [f"x{name}"], [f"y{name}"], keepdims=0) for name in names]
    inputs = [models.value(f"x{name}", [name, 4]) for name in names]
    return models.make_model(nodes, inputs, [models.value(f"y{name}", []) for name in names])


def rows_of(index: Path) -> list[tuple[int, ...]]:
    golden = read_golden(index)
    samples = (golden.sample(place) for place in range(len(golden.entries)))
    return [tuple(np.asarray(value).shape[0] for value in sample.inputs.values()) for sample in samples]
