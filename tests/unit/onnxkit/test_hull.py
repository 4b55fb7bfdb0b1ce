"""The hull of a comparison's errors, beside the same without the elements that are left out before sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.onnxkit.metrics import Point, upper_left_hull

NUMBERS = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
ELEMENTS = st.lists(st.tuples(NUMBERS | st.sampled_from((0.0, 0.5, 1.0)), NUMBERS | st.sampled_from((0.0, 0.5, 1.0))))


def sort_all(known: list[Point], magnitude: np.ndarray, error: np.ndarray) -> list[Point]:
    """Every element sorted by its reference; those that rise above all before them; then the convex hull."""
    magnitude = np.concatenate([magnitude, [point[0] for point in known]])
    error = np.concatenate([error, [point[1] for point in known]])
    wrong = error > 0
    magnitude, error = magnitude[wrong], error[wrong]
    if not error.size:
        return []
    near = magnitude <= magnitude[error == error.max()].min()
    magnitude, error = magnitude[near], error[near]
    order = np.lexsort((-error, magnitude))
    magnitude, error = magnitude[order], error[order]
    rising = np.concatenate([[True], error[1:] > np.maximum.accumulate(error)[:-1]])
    return join_corners(list(zip(magnitude[rising].tolist(), error[rising].tolist(), strict=True)))


def join_corners(points: list[Point]) -> list[Point]:
    hull: list[Point] = []
    for right in points:
        while len(hull) > 1:
            left, middle = hull[-2:]
            if (middle[1] - left[1]) * (right[0] - left[0]) > (right[1] - left[1]) * (middle[0] - left[0]):
                break
            hull.pop()
        hull.append(right)
    return hull


@pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")
@given(st.lists(ELEMENTS, min_size=1, max_size=3))
def test_the_hull_is_that_of_all_elements_to_the_bit(parts: list[list[Point]]) -> None:
    found: list[Point] = []
    wanted: list[Point] = []
    for part in parts:
        magnitude, error = np.array([m for m, _ in part], float), np.array([e for _, e in part], float)
        found, wanted = upper_left_hull(found, magnitude, error), sort_all(wanted, magnitude, error)
    assert found == wanted


@pytest.mark.parametrize("spread", [0.0, 1.0, 8.0])
@pytest.mark.parametrize("tied", [True, False])
def test_the_hull_of_many_elements_is_the_same(spread: float, tied: bool) -> None:  # noqa: FBT001 - a parameter
    rng = np.random.default_rng(0)
    magnitude = np.exp(rng.normal(size=20_000) * spread)
    error = np.abs(rng.normal(size=20_000)) * magnitude ** rng.choice([0.0, 0.1, 1.0])
    if tied:
        magnitude, error = np.round(magnitude, 1), np.round(error, 1)
    assert upper_left_hull([], magnitude, error) == sort_all([], magnitude, error)
