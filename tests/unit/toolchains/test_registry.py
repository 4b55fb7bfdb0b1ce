"""A toolchain is what it states; one that is missing or broken is an error with a way out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bundler.model.errors import EnvironmentMissingError
from bundler.toolchains.registry import find_toolchain, survey_toolchains

Write = Callable[[str], None]


@pytest.fixture
def write_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write the program of the registered toolchain `toy`, which is on the PATH from then on."""
    site, programs = tmp_path / "site", tmp_path / "bin"
    info = site / "toy-1.dist-info"
    info.mkdir(parents=True)
    programs.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[bundler.toolchains]\ntoy = toy_toolchain:TOOLCHAIN\n")
    (site / "toy_toolchain.py").write_text(
        "from bundler.toolchains.registry import Toolchain\n"
        "TOOLCHAIN = Toolchain(\n"
        "    name='toy', program='toy-cc', hint='install toy-cc', questions=(('--version',), ('--target',))\n"
        ")\n"
    )
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.delitem(sys.modules, "toy_toolchain", raising=False)

    def write(body: str) -> None:
        (programs / "toy-cc").write_text(f"#!/bin/sh\n{body}\n")
        (programs / "toy-cc").chmod(0o755)

    return write


def test_its_version_is_the_first_line_and_its_digest_is_over_all_answers(write_program: Write) -> None:
    write_program('[ "$1" = --version ] && printf "\\ntoy 3.1\\nby Acme\\n" || echo arm64')
    found = find_toolchain("toy")
    assert (found.version, found.program.name) == ("toy 3.1", "toy-cc")
    write_program('[ "$1" = --version ] && printf "\\ntoy 3.1\\nby Acme\\n" || echo x64')
    other = find_toolchain("toy")
    assert (other.version, other.program) == (found.version, found.program)
    assert other.digest != found.digest


def test_it_answers_without_the_users_settings(write_program: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("ACME_TOKEN", "secret")
    write_program('echo "${LANG-plain} ${ACME_TOKEN-nothing}"')
    assert find_toolchain("toy").version == "plain nothing"


def test_one_that_is_missing_says_how_to_get_it(write_program: Write) -> None:
    with pytest.raises(EnvironmentMissingError, match=r"toy is missing: toy-cc is not on the PATH") as caught:
        find_toolchain("toy")
    assert caught.value.hint == "install toy-cc"
    (status,) = (tool for tool in survey_toolchains() if tool.name == "toolchain toy")
    assert (status.found, status.hint) == (False, "install toy-cc")
    write_program("echo toy 4")
    (status,) = (tool for tool in survey_toolchains() if tool.name == "toolchain toy")
    assert (status.found, status.version) == (True, "toy 4")


def test_one_that_fails_gives_its_own_last_words(write_program: Write) -> None:
    write_program("echo no licence >&2; exit 3")
    with pytest.raises(EnvironmentMissingError, match=r"ask the toolchain toy for its version.*code 3") as caught:
        find_toolchain("toy")
    assert (caught.value.details, caught.value.hint) == (("no licence",), "install toy-cc")


def test_one_that_nobody_registered_is_an_error() -> None:
    with pytest.raises(EnvironmentMissingError, match="no toolchain is named 'nothing'"):
        find_toolchain("nothing")
