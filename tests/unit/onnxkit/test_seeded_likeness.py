"""Inputs that replace samples: with their kind and range, and none of their content."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from bundler.onnxkit.digests import digest_values
from bundler.onnxkit.seeded_likeness import Likeness


def learn(*samples: dict[str, Any]) -> Likeness:
    made = Likeness()
    for sample in samples:
        made.add(sample)
    return made


FLOATS = (np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn)
WHOLE = (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64, ml_dtypes.int4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_keep_shape_type_and_range(dtype: Any) -> None:
    real = [np.random.default_rng(seed).uniform(-3, 9, (4, 5)).astype(dtype) for seed in range(6)]
    made = learn(*({"x": value} for value in real))
    drawn = made.draw({"x": real[0]}, 0, 0)["x"]
    assert (drawn.shape, drawn.dtype) == ((4, 5), np.dtype(dtype))
    wide = np.stack(real).astype(np.float64)
    assert wide.min() <= drawn.astype(np.float64).min() < drawn.astype(np.float64).max() <= wide.max()
    assert digest_values({"x": drawn}) not in {digest_values({"x": value}) for value in real}


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("most", [2, 7])
def test_whole_numbers_stay_among_those_that_were_given(dtype: Any, most: int) -> None:
    real = np.array([[most, 0, 1, most]]).astype(dtype)
    drawn = learn({"ids": real}).draw({"ids": real}, 0, 3)["ids"]
    assert (drawn.shape, drawn.dtype) == (real.shape, np.dtype(dtype))
    assert set(drawn.astype(np.int64).reshape(-1).tolist()) <= {0, 1, most}


def test_many_different_numbers_are_a_range_and_those_of_a_type_fit_it() -> None:
    limits = np.iinfo(np.int64)
    real = np.append(np.arange(100), [limits.min, limits.max])
    drawn = learn({"ids": real}).draw({"ids": real}, 0, 0)["ids"]
    assert drawn.dtype == np.int64
    tokens = np.arange(100, 200)
    assert set(learn({"ids": tokens}).draw({"ids": tokens}, 0, 0)["ids"].tolist()) <= set(range(100, 200))


def test_a_mask_is_a_mask_and_what_is_constant_stays_so() -> None:
    given = {"attention_mask": np.array([[1, 1, 1, 0]]), "scale": np.full((3,), 0.5, np.float32)}
    drawn = learn(given).draw(given, 0, 1)
    assert sorted(drawn["attention_mask"][0].tolist(), reverse=True) == drawn["attention_mask"][0].tolist()
    assert drawn["scale"].tolist() == [0.5, 0.5, 0.5]


def test_text_is_drawn_from_bundlers_words() -> None:
    given = {"name": np.array(["Ada", "Grace"], object), "tags": [np.array(["x"], object)], "map": {"Ada": 1.0, 3: 2.0}}
    drawn = learn(given).draw(given, 0, 0)
    assert "Ada" not in repr(drawn)
    assert "Grace" not in repr(drawn)
    assert len(drawn["map"]) == 2


def test_what_holds_no_number_is_drawn_all_the_same() -> None:
    given = {"empty": np.zeros((0, 3), np.float32), "odd": np.full((2,), np.nan, np.float32), "none": None}
    drawn = learn(given).draw(given, 0, 0)
    assert drawn["empty"].shape == (0, 3)
    assert drawn["odd"].tolist() == [0.0, 0.0]
    assert drawn["none"] is None


def test_equal_seeds_draw_equal_values() -> None:
    given = {"x": np.linspace(0, 1, 50, dtype=np.float32)}
    first, second = (learn(given).draw(given, 7, 2)["x"] for _ in range(2))
    assert np.array_equal(first, second)
