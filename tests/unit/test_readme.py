"""README.md and the pages of docs/ show what was recorded, and their tables name what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bundler.verification.proof import LEVELS
from docs.console.blocks import (
    ELLIPSIS,
    fill,
    find_differences,
    list_blocks,
    list_pages,
    normalise,
    read_transcript,
    show,
    split,
)
from docs.console.recording import list_commands
from docs.console.scripts import SCRIPTS
from tests.support.command_line import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
ADVICE = "run make docs"


def test_the_readme_is_a_front_page() -> None:
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("page", list_pages(), ids=lambda page: page.name)
def test_every_terminal_is_as_it_was_recorded(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert fill(text) == text, ADVICE
    assert text.count("```console\n") + text.count("```text\n") == len(list_blocks(text))


def test_every_recording_is_shown_once() -> None:
    assert sorted(name for page in list_pages() for name in list_blocks(page.read_text("utf-8"))) == sorted(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_recorded_commands_are_those_of_the_makefile(name: str) -> None:
    assert tuple(command for command, _ in split(read_transcript(name))) == list_commands(name), ADVICE


def test_the_makefile_says_of_its_targets_what_was_recorded() -> None:
    assert find_differences("help") == [], ADVICE


def test_the_makefiles_demos_are_all_shown() -> None:
    demos = re.findall(r"^(demo[a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(demos) == sorted(script.target for script in SCRIPTS.values() if script.target)


def test_the_readme_counts_the_targets() -> None:
    assert f"Today there are {len(list((ROOT / 'targets').glob('*.toml')))} targets" in README


def test_the_readme_has_every_level_of_proof_from_the_greatest_to_the_least() -> None:
    table = README.partition("## Levels of proof")[2].partition("##")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == list(reversed(LEVELS))


RECORDED = """$ bundler build model.onnx \\
    --target linux-x64
model: Inspect (0.34 s)
model: Optimise (1.20 s)
Built out/model in 16.0 s
$ bundler verify out/model
out/model: 48 files
"""


def test_what_is_left_out_becomes_one_line() -> None:
    shown = show("gate", RECORDED.replace("out/model: 48", "error: 48"))
    assert shown == (
        f"$ bundler build model.onnx \\\n    --target linux-x64\n{ELLIPSIS}\n\n"
        "$ bundler verify out/model\nerror: 48 files\n"
    )


def test_times_and_the_order_of_steps_do_not_count_and_figures_do() -> None:
    lines = RECORDED.splitlines(keepends=True)
    swapped = "".join([*lines[:2], lines[3], lines[2], *lines[4:]]).replace("0.34", "12").replace("16.0", "99.9")
    assert normalise(swapped) == normalise(RECORDED)
    assert normalise(RECORDED.replace("48", "55")) != normalise(RECORDED)
    assert normalise(RECORDED.replace("linux-x64", "web")) != normalise(RECORDED)
