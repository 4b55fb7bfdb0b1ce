"""How `--dim` is read, and what is said of what it cannot be."""

from __future__ import annotations

import pytest

from bundler.model.errors import UsageError
from bundler.model.options import parse_dimensions


def test_a_dimension_gets_its_size_and_its_name_may_hold_anything() -> None:
    assert parse_dimensions(["n=1", "a=b=0016", "n=1"]) == {"n": 1, "a=b": 16}
    assert parse_dimensions(["n=2147483647"]) == {"n": 2147483647}


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (["n"], "expected NAME=N"),
        (["=1"], "expected NAME=N"),
        (["n=-1"], "expected NAME=N"),
        (["n=00"], "the size must be at least 1"),
        (["n=2147483648"], "the size must be at most 2147483647"),
        (["n=" + "9" * 5000], "the size must be at most 2147483647"),
        (["n=1", "n=2"], "n is already 1"),
    ],
)
def test_what_is_no_dimension_is_refused(pairs: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_dimensions(pairs)
