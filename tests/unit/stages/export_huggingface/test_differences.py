"""What counts as rounding, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from bundler.model.errors import StageError
from bundler.stages.export_huggingface.differences import LIMIT, differences, join_differences

INF, NAN = float("inf"), float("nan")


def distance(found: list[float], expected: list[float]) -> float:
    return differences({"y": np.array(found)}, {"y": np.array(expected)})["y"].max_relative


def test_differences_are_shares_of_the_largest_output() -> None:
    found = differences({"y": np.array([10.1, 0.1])}, {"y": np.array([10.0, 0.0])})["y"]
    assert found.max_absolute == pytest.approx(0.1)
    assert found.max_relative == pytest.approx(0.01)
    assert found.max_relative > LIMIT


@pytest.mark.parametrize("values", [[], [0.0, 0.0], [INF, 1.0], [NAN, 2.0], [-INF, -1.0]], ids=str)
def test_equal_outputs_are_equal_with_any_values(values: list[float]) -> None:
    assert distance(values, values) == 0


@pytest.mark.parametrize(("found", "expected"), [(NAN, 1.0), (1.0, NAN), (INF, 1.0), (INF, -INF), (1.0, INF)])
def test_no_number_where_there_is_one_is_an_error(found: float, expected: float) -> None:
    with pytest.raises(StageError, match="NaN or infinity"):
        distance([found, 0.0], [expected, 0.0])


def test_another_shape_is_an_error() -> None:
    with pytest.raises(StageError, match="in another shape than PyTorch"):
        distance([1.0], [1.0, 1.0])


def test_the_largest_of_all_trials_counts() -> None:
    all_of_them = differences({"y": np.array([1.5])}, {"y": np.array([1.0])})
    join_differences(all_of_them, differences({"y": np.array([1.1])}, {"y": np.array([1.0])}))
    assert all_of_them["y"].max_absolute == pytest.approx(0.5)
