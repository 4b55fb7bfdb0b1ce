"""How `--shape` is read, and what is said of what it cannot be."""

from __future__ import annotations

import pytest

from bundler.model.errors import UsageError
from bundler.model.options import parse_shapes
from bundler.model.shapes import SizeRange, parse_shape, write_shape


def test_an_input_gets_its_sizes_and_its_name_may_hold_anything() -> None:
    assert parse_shapes(["x=1,3,48,192", "a=b:0=?, 4 ,*"]) == {"x": (1, 3, 48, 192), "a=b:0": (None, 4, None)}
    assert parse_shapes(()) == {}
    assert write_shape(parse_shape("1,*,3")) == "1,?,3"


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("x", "expected INPUT=SIZES"),
        ("=1,2", "expected INPUT=SIZES"),
        ("x=", "it names no sizes"),
        ("x=1,0", "a size must be from 1 to 2147483647, got '0'"),
        ("x=1,-3", "a size must be from 1"),
        ("x=1,99999999999", "a size must be from 1"),
        ("x=1,N", "expected numbers separated by commas, and ? for a size to leave open, got 'N'"),
        ("x=1,,2", "got ''"),
        ("x=9..1", "expected a range such as 64..320, or 64..192..320 with the size to tune for, got '9..1'"),
        ("x=1..2..3..4", "expected a range"),
        ("x=1..N", "expected numbers"),
        ("x=8..8", "a range must have more than one size: write 8 instead of '8..8'"),
        ("x=" + ",".join("1" * 33), "expected 1 to 32 sizes, got 33"),
    ],
)
def test_what_is_no_shape_is_said_with_an_example(pair: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_shapes([pair])
    assert said in caught.value.message
    assert "--shape x=1,3,48,192" in (caught.value.hint or "")


def test_a_range_has_a_size_to_tune_for() -> None:
    assert parse_shape("64..320,1..2..8") == (
        SizeRange(least=64, best=320, most=320),
        SizeRange(least=1, best=2, most=8),
    )
    assert write_shape(parse_shape("?,64..192..320")) == "?,64..192..320"


@pytest.mark.parametrize("text", ["1..8", "1..8..8"])
def test_a_range_that_is_tuned_for_its_greatest_is_written_as_people_write_it(text: str) -> None:
    assert write_shape(parse_shape(text)) == "1..8"
    assert write_shape(parse_shape("1..1..8")) == "1..1..8"


def test_an_input_has_one_shape() -> None:
    with pytest.raises(UsageError, match="x already has the shape 1,2"):
        parse_shapes(["x=1,2", "x=1,3"])
    assert parse_shapes(["x=1,2", "x=1,2"]) == {"x": (1, 2)}
