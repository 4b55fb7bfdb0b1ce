"""The terminals of README.md and docs/, run again, and the commands that README.md begins with."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from docs.console.blocks import find_differences
from tests.support.command_line import ROOT, CommandLine
from tests.support.models import cnn, save


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["demo", "install", "demo-device"])
def test_the_commands_of_the_pages_print_what_they_show(name: str) -> None:
    assert find_differences(name) == [], "run make docs, and read what changed"


@pytest.mark.slow
def test_the_commands_that_the_readme_begins_with_run_as_printed(bundler: CommandLine, tmp_path: Path) -> None:
    save(cnn(), tmp_path)
    block = (
        (ROOT / "README.md").read_text("utf-8").partition("## Start\n")[2].partition("```sh\n")[2].partition("```")[0]
    )
    commands = re.findall(r"^bundler (.*?) *(?:#.*)?$", block, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["build", "verify"]
    for command in commands:
        dataclasses.replace(bundler, cwd=tmp_path).run(*command.split()).expect(0)
