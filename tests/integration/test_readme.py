"""The terminals of README.md, run again."""

from __future__ import annotations

import pytest

from docs.console.blocks import find_differences


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["help", "demo", "install", "demo-device"])
def test_the_commands_of_the_readme_print_what_it_shows(name: str) -> None:
    assert find_differences(name) == [], "run make docs, and read what changed"
