"""Sizes and ages on the command line."""

import pytest

from bundler.cli.commands.cache.trim import parse_size
from bundler.model.errors import UsageError


def test_a_size_has_a_unit() -> None:
    assert parse_size("5GB") == 5_000_000_000
    assert parse_size("100 kb") == 100_000
    assert parse_size("0") == 0


@pytest.mark.parametrize("text", ["5", "1.5", "-1GB", "5GiB", "", "9" * 400 + "GB", "9" * 310])
def test_a_number_alone_would_empty_the_cache_and_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        parse_size(text)
