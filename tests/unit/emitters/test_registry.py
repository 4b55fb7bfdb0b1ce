"""Which emitter writes a format."""

from __future__ import annotations

import pytest

from bundler.emitters.registry import check_format, find_writer
from bundler.model.errors import UsageError


@pytest.mark.parametrize(
    ("ecosystem", "package_format", "writer"),
    [
        ("python", "wheel", "python"),
        ("web", "tgz", "web"),
        ("python", "files", "neutral"),
        ("web", "files", "neutral"),
        ("python", "ortpackage", "neutral"),
        ("neutral", "files", "neutral"),
    ],
)
def test_a_format_of_no_ecosystem_is_written_for_every_target(ecosystem: str, package_format: str, writer: str) -> None:
    assert find_writer(ecosystem, package_format).name == writer


def test_a_format_that_nobody_has_stays_with_its_ecosystem_which_refuses_it() -> None:
    assert find_writer("web", "wheel").name == "web"


@pytest.mark.parametrize("package_format", ["files", "dir"])
def test_an_unknown_ecosystem_is_an_error_whatever_the_format(package_format: str) -> None:
    with pytest.raises(UsageError, match="no emitter is named 'moon'"):
        find_writer("moon", package_format)


@pytest.mark.parametrize("package_format", ["dir", "tgz", "files"])
def test_formats_of_an_ecosystem_and_of_none_are_taken(package_format: str) -> None:
    check_format("web-wasm", "web", package_format)


def test_a_format_that_nobody_has_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="web-wasm bundles have no format 'wheel'") as caught:
        check_format("web-wasm", "web", "wheel", project="bundler.toml")
    assert [line.partition(":")[0] for line in caught.value.details] == ["dir", "tgz", "files", "ortpackage"]
    assert caught.value.hint == 'use --format dir, or write format = "dir" in bundler.toml'
