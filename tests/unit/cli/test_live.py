"""The live display."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress import Progress

from bundler.cli.live import LiveListener
from bundler.model.events import (
    BuildFinished,
    BuildsStarted,
    Message,
    StepFinished,
    StepProgress,
    StepsEnded,
    StepStarted,
)
from bundler.model.stage import Note


@pytest.fixture
def progress() -> Progress:
    return Progress(console=Console(file=io.StringIO(), force_terminal=True, width=120), auto_refresh=False)


def shown(progress: Progress) -> list[tuple[str, str]]:
    return [(task.description, str(task.fields["text"])) for task in progress.tasks]


def test_what_runs_is_shown_and_the_builds_are_counted(progress: Progress) -> None:
    listen = LiveListener(progress)
    listen(BuildsStarted(total=12))
    listen(StepStarted(build="a → b", step="s", title="Optimise", position=3, total=7))
    listen(StepProgress(build="a → b", step="s", fraction=0.5, text="round [red]"))
    assert shown(progress) == [("bundles", "0 of 12"), ("a → b step 3 of 7: Optimise", "50% round [red]")]
    listen(StepFinished(build="a → b", step="s", title="Optimise", cached=False, seconds=1.0))
    assert shown(progress)[1] == ("a → b between steps", "")
    listen(StepsEnded(build="a → b"))
    listen(BuildFinished(build="a → b", names=("a → b",), failed=False, seconds=3.0, done=1, total=12))
    assert shown(progress) == [("bundles", "1 of 12")]


def test_a_single_build_has_no_count(progress: Progress) -> None:
    listen = LiveListener(progress)
    listen(BuildsStarted(total=1))
    listen(Message(build="a → b", note=Note(text="making environment onnxslim")))
    assert shown(progress) == [("a → b between steps", "making environment onnxslim")]


def test_a_long_word_of_a_step_is_cut(progress: Progress) -> None:
    listen = LiveListener(progress)
    listen(StepStarted(build="a → b", step="s", title="Optimise", position=3, total=7))
    listen(Message(build="a → b", note=Note(text="x" * 500)))
    assert len(shown(progress)[0][1]) < 60
