"""Progress as lines of a log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bundler.cli.plain import HEARTBEAT, PlainLog, only_safety
from bundler.model.events import (
    BuildFinished,
    BuildsStarted,
    Event,
    Message,
    StepFinished,
    StepProgress,
    StepsEnded,
    StepStarted,
)
from bundler.model.stage import Note


class Log:
    """A log whose clock is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.lines: list[str] = []
        self._log = PlainLog(self.lines.extend, lambda: self.now)

    def write(self, *events: Event) -> list[str]:
        """The lines of the events."""
        before = len(self.lines)
        for event in events:
            self._log(event)
        return self.lines[before:]

    def beat(self) -> float:
        """Seconds until the next look."""
        return self._log.beat()

    def after(self, seconds: float) -> list[str]:
        """What is said of its own accord so much later."""
        self.now += seconds
        before = len(self.lines)
        self._log.beat()
        return self.lines[before:]


@pytest.fixture
def log() -> Log:
    return Log()


def started(build: str, step: str = "optimize", position: int = 3, total: int = 12) -> StepStarted:
    return StepStarted(build=build, step=step, title=f"Run {step}", position=position, total=total)


def finished(build: str, step: str = "optimize", *, cached: bool = False) -> StepFinished:
    return StepFinished(build=build, step=step, title=f"Run {step}", cached=cached, seconds=1.5)


def ended(build: str, done: int, total: int, *, failed: bool = False) -> BuildFinished:
    return BuildFinished(build=build, names=(build,), failed=failed, seconds=125.0, done=done, total=total)


def message(build: str, text: str) -> Message:
    return Message(build=build, note=Note(text=text))


def test_a_step_has_one_line_when_it_ends(log: Log) -> None:
    assert log.write(started("a → b"), finished("a → b")) == ["a → b: Run optimize (1.50 s)"]
    assert log.write(finished("a → b", cached=True)) == ["a → b: Run optimize (cached)"]
    assert log.write(started("a → b", "emit", 0, 0), started("a → b", "inspect", 1, 1)) == []


def test_a_long_step_is_told_again_and_again(log: Log) -> None:
    log.write(started("a → b"))
    assert log.after(HEARTBEAT - 1) == []
    assert log.after(1) == ["a → b: step 3 of 12: Run optimize, running for 30 s"]
    log.write(StepProgress(build="a → b", step="optimize", fraction=0.34, text="round 5"))
    assert log.after(HEARTBEAT - 1) == []
    assert log.after(95) == ["a → b: step 3 of 12: Run optimize, running for 2 min 34 s (34%, round 5)"]
    log.write(finished("a → b"), StepsEnded(build="a → b"))
    assert log.after(1000) == []


def test_a_long_step_is_told_whatever_other_builds_say(log: Log) -> None:
    log.write(started("a → b"))
    log.now += HEARTBEAT - 1
    log.write(message("c → d", "fetching 6 wheels"), started("c → d"))
    assert log.after(2) == ["a → b: step 3 of 12: Run optimize, running for 31 s"]


def test_the_next_look_is_when_the_first_step_is_due(log: Log) -> None:
    assert log.beat() == HEARTBEAT
    log.write(started("a → b"))
    log.now += 10
    log.write(started("c → d"))
    assert log.beat() == HEARTBEAT - 10
    log.now += 20
    assert log.beat() == 10


def test_what_several_bundles_say_is_said_once_and_counted(log: Log) -> None:
    warning = Note(text="the golden set is synthetic", level="warning")
    end = StepFinished(build="a → b", step="golden", title="Record", cached=False, seconds=1.0, notes=(warning,))
    assert log.write(end) == ["a → b: Record (1.00 s)", "a → b: warning: the golden set is synthetic"]
    assert log.write(replace(end, build="c → d"), Message(build="c → d", note=warning)) == ["c → d: Record (1.00 s)"]
    assert log.write(message("c → d", "fetching 6 wheels")) == ["c → d: fetching 6 wheels"]
    assert log.write(ended("a → b", 1, 3)) == ["a → b: done after 2 min 5 s (1 of 3 bundles)"]
    assert log.write(ended("c → d", 2, 3)) == ["c → d: done after 2 min 5 s (2 of 3 bundles; 2 notes as above)"]


def test_a_warning_of_safety_is_told_without_progress(capsys: pytest.CaptureFixture[str]) -> None:
    listen = only_safety()
    danger = Message(build="a → b", note=Note(text="your own code runs outside the sandbox", level="safety"))
    for event in (started("a → b"), message("a → b", "fetching"), danger, danger, finished("a → b")):
        listen(event)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "a → b: warning: your own code runs outside the sandbox\n")


def test_builds_are_counted(log: Log) -> None:
    assert log.write(BuildsStarted(total=12)) == ["12 bundles"]
    assert log.write(ended("a → b", 3, 12)) == ["a → b: done after 2 min 5 s (3 of 12 bundles)"]
    assert log.write(ended("c → d", 4, 12, failed=True)) == ["c → d: failed after 2 min 5 s (4 of 12 bundles)"]


def test_a_single_build_is_not_counted(log: Log) -> None:
    assert log.write(BuildsStarted(total=1), ended("a → b", 1, 1)) == []


def test_a_build_without_a_running_step_says_what_it_said_last(log: Log) -> None:
    log.write(message("a → b", "making environment onnxslim"))
    assert log.after(45) == ["a → b: no step has run for 45 s; last: making environment onnxslim"]
    log.write(started("a → b", "emit", 0, 0), message("a → b", "fetching 6 wheels"))
    assert log.after(HEARTBEAT) == ["a → b: Run emit, running for 30 s (fetching 6 wheels)"]


def test_nothing_of_a_build_that_ended_is_said_to_run(log: Log) -> None:
    """A failed step has no end of its own, and what precisions are tried under has other names."""
    log.write(BuildsStarted(total=2), started("a → b, static-int8"), started("a → b"))
    log.write(StepsEnded(build="a → b, static-int8"))
    assert log.after(60) == ["a → b: step 3 of 12: Run optimize, running for 1 min 0 s"]
    log.write(ended("a → b", 1, 2, failed=True))
    assert log.after(60) == []
