"""A golden set says what it cannot show: one size, a branch that never ran, few samples, made-up inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from bundler.model.codec import decode
from bundler.model.errors import ModelError
from bundler.model.golden_inputs import TriedDimension, Weakness
from bundler.model.stage import StageResult
from bundler.onnxkit import seeded_sets
from bundler.onnxkit.golden import GoldenSet, read_golden
from bundler.stages.record_golden.examining import choose_repeated
from tests.support import models, open_models
from tests.support.recurrent_models import make_voice
from tests.support.stage_calls import call_stage


@pytest.fixture(autouse=True)
def _in_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.chdir(tmp_path / "scratch")


def recorded(model: ModelProto, folder: Path, samples: Path | None = None, **options: Any) -> StageResult:
    inputs = {"model": models.save(model, folder)} | ({"samples": samples} if samples else {})
    return call_stage("record_golden", folder / "golden", inputs, **options)


def weak(result: StageResult) -> list[tuple[str, str]]:
    found = [decode(Weakness, item) for item in result.facts["weaknesses"]]
    assert all(item.text.isprintable() and item.text for item in found)
    return [(item.kind, item.name) for item in found]


def golden_set(folder: Path) -> GoldenSet:
    return read_golden(folder / "golden" / "index.json")


def texts(result: StageResult) -> list[str]:
    return [item["text"] for item in result.facts["weaknesses"]]


def test_a_seeded_set_of_a_model_that_takes_any_size_is_only_synthetic(tmp_path: Path) -> None:
    result = recorded(models.token_encoder(), tmp_path)
    assert weak(result) == [("synthetic", "")]
    assert [decode(TriedDimension, item).sizes for item in result.facts["tried_dimensions"]] == [(1, 2), (8, 16, 256)]


def test_a_model_of_one_batch_says_so(tmp_path: Path) -> None:
    result = recorded(open_models.only_batch(1), tmp_path)
    assert weak(result) == [("synthetic", ""), ("one-size", "batch")]
    assert texts(result)[1] == "batch is 1 in all samples: the model rejected 2, 3, 4"
    assert result.notes[1].text == "the model runs only at batch=1 (rejected: batch: 2, 3, 4)"
    assert result.notes[1].level == "warning"


def test_samples_of_one_size_are_named_and_those_of_two_are_not(tmp_path: Path) -> None:
    folder = tmp_path / "samples"
    folder.mkdir()
    for index in range(8):
        np.savez(folder / f"{index}.npz", x=np.ones((1, 4), np.float32))
    assert weak(recorded(models.identity(shape=["batch", 4]), tmp_path / "one", folder)) == [("one-size", "batch")]
    np.savez(folder / "0.npz", x=np.ones((3, 4), np.float32))
    assert weak(recorded(models.identity(shape=["batch", 4]), tmp_path / "two", folder)) == []


def test_few_samples_of_a_user_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", x=np.ones((1, 2, 3), np.float32))
    result = recorded(models.identity(), tmp_path / "model", tmp_path / "all.npz")
    assert weak(result) == [("few-samples", "")]
    assert texts(result)[0].startswith("1 sample judge")


def test_fewer_seeded_samples_than_asked_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeded_sets, "MAX_SET_MULTIPLICATIONS", 10)
    result = recorded(models.cnn(), tmp_path)
    assert result.facts["samples"] == 3
    assert texts(result)[1].startswith("3 samples instead of 8: one run of the model costs 0.0 billion")


@pytest.mark.parametrize(
    "make", [models.if_model, lambda: open_models.chosen_by_steps(50), open_models.recurrent_audio]
)
def test_inputs_that_choose_a_branch_reach_both(tmp_path: Path, make: Any) -> None:
    assert weak(recorded(make(), tmp_path)) == [("synthetic", "")]


def test_a_branch_that_no_input_reaches_is_named(tmp_path: Path) -> None:
    result = recorded(open_models.never_chosen(), tmp_path)
    assert weak(result) == [("synthetic", ""), ("branch-not-taken", "choice")]
    assert texts(result)[1] == "no sample took the then branch of the condition choice"


def test_a_branch_that_the_fixed_sizes_rule_out_is_no_weakness(tmp_path: Path) -> None:
    """The condition of the other rate is open; that of the length of its frames is not in the bundle."""
    result = recorded(make_voice(), tmp_path / "fixed", dimensions={"samples": 8})
    assert [name for kind, name in weak(result) if kind == "branch-not-taken"] == ["hn"]


def test_a_users_samples_that_take_one_branch(tmp_path: Path) -> None:
    folder = tmp_path / "samples"
    folder.mkdir()
    for index in range(8):
        np.savez(folder / f"{index}.npz", x=np.ones((1, 3), np.float32), positive=np.array(True))
    assert weak(recorded(models.if_model(), tmp_path / "m", folder)) == [("branch-not-taken", "y")]
    model = tmp_path / "m" / "model.onnx"
    call = {"model": model, "recorded": tmp_path / "m" / "golden" / "index.json"}
    taken = call_stage("record_golden", tmp_path / "taken", call, max_samples=2)
    assert weak(taken) == [("few-samples", ""), ("branch-not-taken", "y")]


def test_a_model_that_refuses_padding_gets_whole_rows(tmp_path: Path) -> None:
    result = recorded(open_models.refuses_padding(), tmp_path)
    assert result.facts["samples"] == 8
    found = golden_set(tmp_path)
    assert all(found.sample(index).inputs["attention_mask"].all() for index in range(8))


def test_an_audio_model_without_samples_is_recorded_at_both_rates(tmp_path: Path) -> None:
    result = recorded(open_models.recurrent_audio(), tmp_path)
    found = golden_set(tmp_path)
    assert {int(found.sample(index).inputs["sr"]) for index in range(8)} == {16000, 8000}
    assert result.facts["samples"] == 8


def test_values_on_which_the_model_does_not_end_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends on the first sample, and a sample must not be left out because a machine is slow."""
    monkeypatch.setattr("bundler.onnxkit.size_search.FIXED_RUN_SECONDS", 0.5)
    with pytest.raises(ModelError, match=r"did not finish on a seeded input: one run took more than 0.5 s"):
        recorded(open_models.endless_on_true(), tmp_path)


def test_the_same_bytes_whatever_the_machine_is_busy_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No clock and no number of cores decides what the set holds."""
    one = recorded(models.token_encoder(), tmp_path / "one")
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    other = recorded(models.token_encoder(), tmp_path / "other")
    assert one == other
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one" / "golden").rglob("*") if path.is_file()]
    assert all((tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes() for name in files)


def test_all_samples_run_twice_where_that_costs_little() -> None:
    image = {"image": np.zeros((1, 3, 16, 16), np.float32)}
    assert set(choose_repeated(models.cnn(), [image] * 9, draws=False)) == set(range(9))
    wide = {"image": np.zeros((8192, 3, 16, 16), np.float32)}
    assert set(choose_repeated(models.cnn(), [wide] * 9, draws=False)) == {0, 4, 8}
    assert set(choose_repeated(models.cnn(), [wide] * 9, draws=True)) == set(range(9))
