"""Ready-made samples: streamed, split, and judged as a whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from bundler.onnxkit.golden import read_golden
from tests.support import models
from tests.support.data_folders import prepare, refuse
from tests.support.stage_calls import call_stage


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.save(models.identity(), tmp_path / "model")  # x[2, 3]


def archive(path: Path, count: int) -> Path:
    np.savez(path, x=np.arange(count * 6, dtype=np.float32).reshape(count, 2, 3))
    return path


def folder_of(path: Path, *values: float) -> Path:
    path.mkdir()
    for index, value in enumerate(values):
        np.savez(path / f"{index}.npz", x=np.linspace(value, value + 1, 6, dtype=np.float32).reshape(2, 3))
    return path


def names(output: Path, model: Path, data: Path, **options: object) -> list[str]:
    return [entry["name"] for entry in prepare(output, model, data, kind="samples", **options)[1].entries]


def test_all_samples_arrive_in_the_golden_sets_own_form(tmp_path: Path, model: Path) -> None:
    result, found = prepare(tmp_path / "out", model, archive(tmp_path / "all.npz", 4), kind="samples")
    assert found.sample(2).inputs["x"].tolist() == [[12, 13, 14], [15, 16, 17]]
    assert found.sample(2).outputs == {}
    assert not found.synthetic
    assert result.facts == {
        "kind": "samples",
        "part": "all",
        "samples": 4,
        "total": 4,
        "dropped": 0,
        "distinct": 4,
        "synthetic": False,
        "dimensions": {},
        "preprocessing": None,
        "constant_inputs": [],
        "constant_samples": 0,
    }


def test_the_golden_set_records_a_prepared_set(tmp_path: Path, model: Path) -> None:
    prepare(tmp_path / "out", model, folder_of(tmp_path / "data", 1, 2), kind="samples")
    inputs = {"model": model, "samples": tmp_path / "out" / "index.json"}
    result = call_stage("record_golden", tmp_path / "golden", inputs)
    assert result.facts["samples"] == 2
    assert not result.facts["synthetic"]
    golden = read_golden(tmp_path / "golden" / "index.json")
    assert golden.sample(1).outputs["y"][0, 0] == 2


def test_held_out_samples_and_those_to_calibrate_with_are_never_the_same(tmp_path: Path, model: Path) -> None:
    data = archive(tmp_path / "all.npz", 12)
    held = names(tmp_path / "held", model, data, part="held-out", every=5)
    rest = names(tmp_path / "rest", model, data, part="calibration", every=5)
    assert held[0] == "all-000"
    assert len(held) in (2, 3)
    assert sorted([*held, *rest]) == [f"all-{index:03d}" for index in range(12)]


def test_kinds_that_take_turns_are_all_held_out(tmp_path: Path, model: Path) -> None:
    """Samples named `00-cat, 01-dog, …` in turns would be judged by one kind alone if every fifth were taken."""
    held = names(tmp_path / "held", model, archive(tmp_path / "all.npz", 100), part="held-out", every=5)
    places = [int(name.removeprefix("all-")) for name in held]
    assert [place // 5 for place in places] == list(range(20))
    assert {place % 5 for place in places} == {0, 1, 2, 3, 4}
    assert held == names(tmp_path / "again", model, archive(tmp_path / "all.npz", 100), part="held-out", every=5)


def test_a_limit_spreads_over_all_samples(tmp_path: Path, model: Path) -> None:
    data = archive(tmp_path / "all.npz", 100)
    assert names(tmp_path / "out", model, data, limit=4) == ["all-000", "all-025", "all-050", "all-075"]
    part = {"part": "held-out", "every": 10, "limit": 3}
    assert names(tmp_path / "held", model, data, **part) == ["all-000", "all-032", "all-062"]
    assert len(names(tmp_path / "more", model, data, limit=1000)) == 100


def test_what_is_not_taken_is_not_opened(tmp_path: Path, model: Path) -> None:
    data = folder_of(tmp_path / "data", 0, 1, 2, 3)
    (data / "0.npz").write_bytes(b"broken")
    assert names(tmp_path / "out", model, data, part="calibration", every=4) == ["1", "2", "3"]
    error = refuse(tmp_path / "held", model, data, kind="samples", part="held-out", every=4)
    assert error.message == "samples cannot be read"
    assert error.details[0].startswith("0: the samples in 0.npz cannot be read")


def test_samples_equal_to_held_out_ones_are_dropped_and_counted(tmp_path: Path, model: Path) -> None:
    prepare(tmp_path / "held", model, folder_of(tmp_path / "a", 1, 2), kind="samples")
    held = {"held_out": tmp_path / "held" / "index.json"}
    result, found = prepare(tmp_path / "out", model, folder_of(tmp_path / "b", 2, 3), kind="samples", inputs=held)
    assert [entry["name"] for entry in found.entries] == ["1"]
    assert result.facts["dropped"] == 1
    assert result.notes[0].text == "1 of 2 samples are skipped: they are equal to held-out ones"
    error = refuse(tmp_path / "none", model, tmp_path / "a", kind="samples", inputs=held)
    assert error.message.startswith("no sample is left for calibration: all 2 samples are among those")


def test_one_sample_cannot_be_both(tmp_path: Path, model: Path) -> None:
    data = folder_of(tmp_path / "data", 1)
    error = refuse(tmp_path / "out", model, data, kind="samples", part="calibration")
    assert error.message == "no sample is left for calibration: the only sample is held out to judge the accuracy"
    assert names(tmp_path / "held", model, data, part="held-out") == ["0"]


def test_no_samples_at_all(tmp_path: Path, model: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "no samples" in refuse(tmp_path / "out", model, tmp_path / "empty", kind="samples").message
    np.savez(tmp_path / "none.npz", x=np.zeros((0, 2, 3), np.float32))
    assert "no samples" in refuse(tmp_path / "out2", model, tmp_path / "none.npz", kind="samples").message


def test_samples_without_any_range_are_refused(tmp_path: Path, model: Path) -> None:
    np.savez(tmp_path / "zeros.npz", x=np.zeros((3, 2, 3), np.float32))
    error = refuse(tmp_path / "out", model, tmp_path / "zeros.npz", kind="samples")
    assert error.message == "cannot calibrate with these samples: every value in them is the same"
    assert error.details == ("'x' is 0 everywhere",)
    result, _ = prepare(tmp_path / "golden", model, tmp_path / "zeros.npz", kind="samples", allow_constant=True)
    assert [note.text for note in result.notes] == [
        "all 3 samples are equal and count as one",
        "3 of 3 samples hold one value only: zeros-000, zeros-001, zeros-002",
    ]


def test_odd_samples_are_reported(tmp_path: Path, model: Path) -> None:
    values = np.arange(18, dtype=np.float32).reshape(3, 2, 3)
    values[1] = 7
    values[2, 0, 0] = np.inf
    np.savez(tmp_path / "odd.npz", x=values)
    result, _ = prepare(tmp_path / "out", model, tmp_path / "odd.npz", kind="samples")
    assert [note.text for note in result.notes] == [
        "1 of 3 samples hold one value only: odd-001",
        "1 of 3 samples hold NaN or infinity (odd-002: 'x' holds 1 infinite among 6 values)",
    ]
    values[0, 0, 0] = np.nan
    np.savez(tmp_path / "nan.npz", x=values)
    refused = refuse(tmp_path / "nan", model, tmp_path / "nan.npz", kind="samples")
    assert refused.details == ("nan-000: 'x' holds 1 NaN among 6 values",)
    assert refused.hint == "remove the samples that hold NaN, or replace these values"


def test_nan_is_found_in_types_that_numpy_lacks(tmp_path: Path) -> None:
    model = models.save(models.passing(TensorProto.BFLOAT16, [2]), tmp_path)
    raw = np.array([[0x7FC0, 0x3F80]], np.uint16).view("V2")
    np.savez(tmp_path / "raw.npz", x=raw)
    error = refuse(tmp_path / "out", model, tmp_path / "raw.npz", kind="samples")
    assert error.details == ("raw-000: 'x' holds 1 NaN among 2 values",)


def test_at_most_twenty_problems_are_listed(tmp_path: Path, model: Path) -> None:
    np.savez(tmp_path / "wide.npz", x=np.zeros((50, 2, 4), np.float32))
    error = refuse(tmp_path / "out", model, tmp_path / "wide.npz", kind="samples")
    assert error.details[0] == "wide-000: 'x': expected float32[2, 3], got float32[2, 4]"
    assert len(error.details) == 21
    assert error.details[-1].startswith("and ")


def test_compressed_and_column_major_archives_are_the_same(tmp_path: Path, model: Path) -> None:
    values = np.random.default_rng(0).standard_normal((9, 2, 3)).astype(np.float32)
    np.savez(tmp_path / "plain.npz", x=values)
    np.savez_compressed(tmp_path / "small.npz", x=values)
    np.savez(tmp_path / "columns.npz", x=np.asfortranarray(values))
    for name in ("plain", "small", "columns"):
        _, found = prepare(tmp_path / name, model, tmp_path / f"{name}.npz", kind="samples", limit=3)
        assert found.sample(1).inputs["x"].tolist() == values[3].tolist()


def test_hidden_archives_are_passed_over(tmp_path: Path, model: Path) -> None:
    data = folder_of(tmp_path / "data", 1, 2)
    (data / "._0.npz").write_bytes(b"what another system leaves beside each file")
    assert names(tmp_path / "out", model, data) == ["0", "1"]


def test_names_that_no_terminal_should_see(tmp_path: Path, model: Path) -> None:
    data = folder_of(tmp_path / "data", 1)
    (data / "0.npz").rename(data / "a\x1b[31m\n.npz")
    assert names(tmp_path / "out", model, data) == ["a\\x1b[31m\\n"]


def test_synthetic_data_are_seeded_and_say_so(tmp_path: Path) -> None:
    model = models.save(models.token_encoder(vocabulary=11), tmp_path)
    result, found = prepare(tmp_path / "one", model, None, kind="synthetic", count=5)
    assert found.synthetic
    assert result.facts["synthetic"]
    assert result.facts["samples"] == 5
    assert result.facts["dimensions"]["sequence"] == 16
    assert "do not ship a model" in result.notes[0].text
    assert max(int(found.sample(index).inputs["input_ids"].max()) for index in range(5)) < 11
    prepare(tmp_path / "other", model, None, kind="synthetic", count=5)
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert all((tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes() for name in files)


def test_synthetic_data_are_not_those_of_the_golden_set(tmp_path: Path, model: Path) -> None:
    call_stage("record_golden", tmp_path / "golden", {"model": model})
    held = {"held_out": tmp_path / "golden" / "index.json"}
    result, _ = prepare(tmp_path / "out", model, None, kind="synthetic", inputs=held)
    assert result.facts["dropped"] == 0
    golden = call_stage("record_golden", tmp_path / "g2", {"model": model, "samples": tmp_path / "out" / "index.json"})
    assert golden.facts["synthetic"]
