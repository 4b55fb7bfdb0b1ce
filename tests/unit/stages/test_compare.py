"""How far a model's outputs are from the golden ones, in figures that a gate can judge."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bundler.model.errors import StageError
from bundler.model.gates import worst_element
from bundler.model.reference import EXACT
from bundler.model.results import OutputComparison
from bundler.model.runtime import Tolerance
from bundler.onnxkit.metrics import Tally
from bundler.onnxkit.reference_tally import ReferenceTally
from tests.support import models
from tests.support.stage_calls import compare, record

NUMBERS = st.floats(-1e6, 1e6, width=32)
PAIRS = hnp.array_shapes(min_dims=1, max_dims=3, max_side=6).flatmap(
    lambda shape: st.tuples(*(hnp.arrays(np.float32, shape, elements=NUMBERS) for _ in range(2)))
)


def tally(*pairs: tuple[Any, Any], stable: bool = True) -> Tally:
    result = Tally(name="y", stable=stable)
    for reference, actual in pairs:
        result.add(reference, actual)
    return result


def judge(*pairs: tuple[Any, Any], quantity: bool = False) -> OutputComparison:
    """The figures, with what the references say by themselves."""
    found, known = Tally(name="y", quantity=quantity), ReferenceTally(name="y", quantity=quantity)
    for number, (reference, actual) in enumerate(pairs):
        found.add(reference, actual, f"sample {number}")
        known.add(reference)
    return found.result(known.figures())


def test_the_same_model_is_equal(tmp_path: Path) -> None:
    model = models.save(models.cnn(), tmp_path)
    found = compare(model, record(model, tmp_path / "golden"), tmp_path / "compare")
    assert found.equal
    assert found.samples == 8
    assert found.outputs[0].top1_agreement == 1.0
    assert found.outputs[0].sqnr_db is None


def test_other_weights_are_found(tmp_path: Path) -> None:
    golden = record(models.save(models.cnn(), tmp_path / "a"), tmp_path / "golden")
    changed = models.cnn()
    changed.graph.initializer[4].CopyFrom(models.tensor("w3", models.weights(5, 16, seed=99)))
    output = compare(models.save(changed, tmp_path / "b"), golden, tmp_path / "compare").outputs[0]
    assert not output.equal
    assert output.mismatch is None
    assert output.max_absolute > 0.001
    assert output.sqnr_db is not None
    assert output.sqnr_db < 60


def test_the_session_is_opened_as_asked(tmp_path: Path) -> None:
    model = models.save(models.mlp(), tmp_path)
    golden = record(model, tmp_path / "golden")
    options = {"session": {"graph_optimization_level": "all", "intra_op_num_threads": 1}, "disabled_optimizers": ()}
    assert compare(model, golden, tmp_path / "c", **options).outputs[0].max_absolute < 1e-5
    with pytest.raises(StageError, match="cannot load"):
        compare(model, golden, tmp_path / "d", providers=[["NoSuchProvider", {}]])


def test_a_model_with_another_interface_does_not_run(tmp_path: Path) -> None:
    golden = record(models.save(models.identity("x"), tmp_path / "a"), tmp_path / "golden")
    with pytest.raises(StageError, match="no longer runs on the golden sample seeded-000"):
        compare(models.save(models.identity("z"), tmp_path / "b"), golden, tmp_path / "compare")


def test_a_lost_output_is_a_mismatch(tmp_path: Path) -> None:
    golden = record(models.save(models.identity("x", "y"), tmp_path / "a"), tmp_path / "golden")
    output = compare(models.save(models.identity("x", "z"), tmp_path / "b"), golden, tmp_path / "compare").outputs[0]
    assert output.mismatch == "the model no longer has this output"


@pytest.mark.parametrize("known", [True, False])
def test_an_output_that_was_not_recorded_is_a_mismatch(tmp_path: Path, *, known: bool) -> None:
    model = models.save(models.identity("x", "y"), tmp_path)
    golden = record(model, tmp_path / "golden")
    index = json.loads(golden.read_text("utf-8"))
    del index["samples"][1]["outputs"]["y"]
    if not known:
        for sample in index["samples"]:
            sample["outputs"] = {}
        index["outputs"] = []
    golden.write_text(json.dumps(index), "utf-8")
    (output,) = compare(model, golden, tmp_path / "compare").outputs
    assert not output.equal
    assert output.mismatch == f"the golden sample seeded-00{1 if known else 0} has no recorded value for it"


@pytest.mark.parametrize(
    "change",
    [
        lambda index: "[" * 100_000,  # noqa: ARG005
        lambda index: [index],
        lambda index: {**index, "samples": "abc"},
        lambda index: {**index, "samples": [{"name": [], "inputs": {}, "outputs": {}}]},
        lambda index: {**index, "outputs": [{"name": "scores", "signal": "loud"}]},
        lambda index: {**index, "samples": [{"name": "a", "inputs": {"x": 5}, "outputs": {}}]},
        lambda index: {**index, "samples": [{"name": "a", "inputs": {"x": {"kind": "map"}}, "outputs": {}}]},
    ],
    ids=["nested", "a list", "samples", "a name", "a figure", "a value", "a map"],
)
def test_a_golden_set_that_is_none_cannot_be_read(tmp_path: Path, change: Callable[[Any], Any]) -> None:
    model = models.save(models.identity("x", "y"), tmp_path)
    golden = record(model, tmp_path / "golden")
    made = change(json.loads(golden.read_text("utf-8")))
    golden.write_text(made if isinstance(made, str) else json.dumps(made), "utf-8")
    with pytest.raises(StageError, match="the golden set in golden cannot be read"):
        compare(model, golden, tmp_path / "compare")


@settings(deadline=None)
@given(pair=PAIRS)
def test_figures_are_those_of_their_formulas(pair: tuple[np.ndarray, np.ndarray]) -> None:
    reference, actual = pair
    found = judge((reference, actual))
    wide, other = reference.astype(np.float64), actual.astype(np.float64)
    error = np.abs(other - wide)
    assert found.max_absolute == error.max()
    assert found.mean_absolute == pytest.approx(error.mean())
    nonzero = wide != 0
    expected = (error[nonzero] / np.abs(wide[nonzero])).max() if nonzero.any() else 0.0
    assert found.max_relative == expected
    norms = np.linalg.norm(wide) * np.linalg.norm(other)
    if norms > 1e-30:
        assert found.cosine == pytest.approx(np.vdot(wide, other) / norms, abs=1e-9)
    noise, signal = float((error**2).sum()), float(((wide - wide.mean()) ** 2).sum())
    if noise > 0 and wide.max() - wide.min() > EXACT * np.abs(wide).max():
        assert found.sqnr_db == pytest.approx(10 * np.log10(signal / noise), abs=1e-6)
    else:
        assert found.sqnr_db is None


@settings(deadline=None)
@given(pairs=st.lists(PAIRS, min_size=1, max_size=3), relative=st.floats(0, 10))
def test_the_envelope_decides_as_all_elements_do(pairs: list[tuple[np.ndarray, np.ndarray]], relative: float) -> None:
    found = tally(*pairs).result()
    wide = [(one.astype(np.float64), other.astype(np.float64)) for one, other in pairs]
    worst = max(float((np.abs(b - a) - relative * np.abs(a)).max()) for a, b in wide)
    assume(found.max_absolute > 0)
    reference, error = worst_element(found, Tolerance(absolute=0, relative=relative))
    # An element without any error can be the worst only where nothing exceeds anything.
    assert max(error - relative * reference, 0) == pytest.approx(max(worst, 0), rel=1e-9, abs=1e-9)


def test_agreement_counts_rows() -> None:
    reference = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]], np.float32)
    actual = np.array([[0.2, 0.8], [0.4, 0.6], [0.1, 0.9]], np.float32)
    assert tally((reference, actual)).result().top1_agreement == pytest.approx(2 / 3)
    assert tally((reference[:, :1], actual[:, :1])).result().top1_agreement is None
    assert tally((reference[0], actual[0])).result().top1_agreement is None


@pytest.mark.parametrize(
    ("reference", "actual", "said"),
    [
        (np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32), "is float32[3, 2] instead of float32[2, 3]"),
        (np.zeros(2, np.float32), np.zeros(2, np.float64), "is float64[2] instead of float32[2]"),
        (np.array([1.0, np.nan]), np.array([np.nan, 1.0]), "NaN or infinity at different places"),
        (np.array([np.inf]), np.array([-np.inf]), "NaN or infinity at different places"),
        (np.array([1.0]), np.array([np.inf]), "NaN or infinity at different places"),
        ([np.zeros(1)], [], "has 0 items instead of 1"),
        ([np.zeros(1)], [np.zeros(2)], "item 0: is float64[2] instead of float64[1]"),
        ({"a": 1.0}, {"b": 1.0}, "has the keys ['b'] instead of ['a']"),
        (np.zeros(1), None, "is empty instead of a tensor"),
        (None, np.zeros(1), "is a tensor instead of empty"),
    ],
)
def test_what_cannot_be_compared_says_why(reference: object, actual: object, said: str) -> None:
    found = tally((reference, actual)).result()
    assert not found.equal
    assert said in str(found.mismatch)


@pytest.mark.parametrize(
    ("reference", "actual", "agreement", "said"),
    [
        (np.array([1, 2, 3]), np.array([1, 5, 3]), 2 / 3, "1 of 3 values differ, the first at [1]: '5' instead of '2'"),
        (np.array(["a"], object), np.array(["b"], object), 0.0, "the first at [0]: 'b' instead of 'a'"),
        (np.array([True, False]), np.array([True, True]), 0.5, "the first at [1]: 'True' instead of 'False'"),
    ],
)
def test_values_that_are_no_numbers_with_a_fraction_are_equal_or_not(
    reference: np.ndarray, actual: np.ndarray, agreement: float, said: str
) -> None:
    found = tally((reference, actual)).result()
    assert (found.equal, found.mismatch, found.max_absolute) == (False, None, 0.0)
    assert found.agreement == pytest.approx(agreement)
    assert said in found.difference
    assert tally((reference, reference)).result().agreement == 1.0


def test_the_worst_sample_is_named_with_its_ratio() -> None:
    plain = np.array([1.0, -1.0] * 4)
    result = judge((plain, plain + 0.01), (plain, plain + 0.1), (plain, plain))
    assert result.worst_sample == "sample 1"
    assert result.worst_sqnr_db == pytest.approx(20)
    found = Tally(name="y")
    found.add(np.ones(2), np.ones(2) + 0.1, "blurred")
    found.add(np.ones(2), np.ones(2), "equal")
    assert found.result().worst_sample == "blurred"
    found.add(np.ones(2), np.ones(3), "cropped")
    found.add(np.ones(2), -9 * np.ones(2), "loud")
    assert found.result().worst_sample == "cropped"
    assert tally((np.ones(2), np.ones(2))).result().worst_sample == ""


def test_numbers_in_maps_and_sequences_are_measured() -> None:
    found = tally(([{0: 0.25, 1: 0.75}], [{0: 0.26, 1: 0.74}])).result()
    assert found.mismatch is None
    assert found.max_absolute == pytest.approx(0.01)


def test_equal_patterns_of_nan_leave_the_rest_to_be_measured() -> None:
    found = tally((np.array([np.nan, 1.0, np.inf]), np.array([np.nan, 1.5, np.inf]))).result()
    assert found.mismatch is None
    assert found.max_absolute == 0.5
    assert tally((np.array([np.nan]), np.array([np.nan]))).result().equal


def test_of_an_unstable_output_only_type_and_shape_count() -> None:
    assert tally((np.zeros(2), np.ones(2)), stable=False).result().mismatch is None
    assert tally((np.zeros(2), np.ones(3)), stable=False).result().mismatch
