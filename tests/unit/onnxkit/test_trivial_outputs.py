"""The signal of a model compared with constant outputs, for outputs of any shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from bundler.onnxkit.column_units import find_units, ranges_of
from bundler.onnxkit.trivial_outputs import MAX_SAMPLE_ELEMENTS, TrivialOutputs

SHAPES = {
    "one shape": [(1, 6)] * 12,
    "batches": [(8, 6)] * 4,
    "a shape each": [(1, 4 + length, 6) for length in range(12)],
    "pictures of a size each": [(1, 6, 4 + size, 9) for size in range(12)],
    "large pictures": [(1, 6, 300, 300)] * 3,
    "few large ones": [(1, 300, 6)] * 2,
}


def measure(shapes: Sequence[tuple[int, ...]], noise: float, *, axis: int) -> float | None:
    """Of outputs of spread 1 beside an offset of a thousand for every second class, with so much noise."""
    random, found = np.random.default_rng(3), TrivialOutputs()
    for shape in shapes:
        offset = np.moveaxis(np.zeros(shape) + 0.0, axis, -1)
        offset[..., ::2] = 1000
        reference = random.standard_normal(shape) + np.moveaxis(offset, -1, axis)
        found.add(reference, noise * random.standard_normal(shape))
    return found.ratio_db()


@pytest.mark.parametrize("name", SHAPES)
def test_an_offset_for_each_class_is_no_signal(name: str) -> None:
    axis = 1 if "picture" in name else -1
    good, wrong = (measure(SHAPES[name], noise, axis=axis) for noise in (0.1, 1.0))
    assert good is not None
    assert wrong is not None
    assert 17 < good < 23
    assert wrong < 3


def test_too_few_outputs_have_no_figure() -> None:
    assert measure([(1, 3)] * 2, 0.1, axis=-1) is None


def test_large_outputs_are_subsampled_in_the_same_places() -> None:
    """Without holding them whole."""
    found = TrivialOutputs()
    for _ in range(3):
        found.add(np.zeros((1, 21, 512, 512)), np.zeros((1, 21, 512, 512)))
    assert found.elements <= 3 * MAX_SAMPLE_ELEMENTS
    assert len({pair[0].shape for pairs in found.kept.values() for pair in pairs}) == 1


def test_columns_of_other_units_are_reported_by_their_spread() -> None:
    random = np.random.default_rng(1)

    def units(*columns: np.ndarray) -> list[list[int]]:
        return [np.flatnonzero(mask).tolist() for mask in find_units(*ranges_of(np.stack(columns, axis=1)))]

    wide, narrow, flat = 1000 * random.standard_normal(50), random.standard_normal(50), np.zeros(50)
    share = random.random(50)
    assert units(wide, narrow, flat, narrow * 2) == [[0], [1, 3]]
    assert units(narrow, narrow * 3, narrow / 3) == [[0, 1, 2]]
    assert units(share, share / 100) == [[0, 1]]
    assert units(share, wide, share / 100) == [[0, 2], [1]]
    assert units(flat, flat) == [[0, 1]]
    assert units(*(wide for _ in range(70)), narrow) == [list(range(70))]
