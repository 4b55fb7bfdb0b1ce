"""What goes wrong in a stage or its worker becomes one clear error, and the next build is good."""

from __future__ import annotations

import errno
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bundler.execution.cache import Cache, open_cache
from bundler.execution.executor import Executor
from bundler.execution.records import RecordStore
from bundler.execution.sources import Source, digest_source
from bundler.model.errors import ModelError, StageError
from bundler.model.events import Event, Reporter, StepFinished, ignore
from tests.unit.execution.conftest import Execute, step

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")


@POSIX
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("abort", "stage crash crashed in native code (SIGABRT)"),
        ("segfault", "stage crash crashed in native code (SIGSEGV)"),
        ("exit", "stage crash exited with code 7"),
    ],
)
def test_a_native_crash_names_the_signal_and_shows_the_last_words(
    execute: Execute, how: str, message: str, cache: Cache
) -> None:
    with pytest.raises(StageError) as caught:
        execute(step("crash", how=how))
    assert caught.value.message == message
    assert "last words of the tool" in caught.value.details
    (log,) = (cache.root / "logs").iterdir()
    assert caught.value.details[-1] == f"the worker's log: {log}"
    assert "last words" in log.read_text()


def test_after_a_crash_the_next_step_gets_a_new_worker(execute: Execute) -> None:
    with pytest.raises(StageError):
        execute(step("crash"))
    assert execute(step("count"))["count"].facts["bytes"] == 7


def test_a_failure_is_never_remembered(execute: Execute, cache: Cache) -> None:
    for _ in range(2):
        with pytest.raises(StageError):
            execute(step("crash"))
    assert not list((cache.root / "records").rglob("*.json"))
    assert not list((cache.root / "artifacts").rglob("*"))
    assert not list((cache.root / "locks").iterdir())


@pytest.mark.parametrize("native", [False, True])
def test_a_hang_is_ended_at_its_time_limit(execute: Execute, native: bool) -> None:  # noqa: FBT001
    started = time.monotonic()
    with pytest.raises(StageError, match=r"stage hang did not finish within 1 s and was terminated"):
        execute(step("hang", native=native))
    assert time.monotonic() - started < 10


def test_an_error_of_ours_arrives_as_its_own_class(execute: Execute) -> None:
    with pytest.raises(ModelError) as caught:
        execute(step("raises", kind="model"))
    assert (caught.value.message, caught.value.hint) == ("the model is bad", "mend it")
    assert caught.value.details == ("line 1", "line 2")


def test_a_defect_in_a_stage_shows_its_traceback(execute: Execute) -> None:
    with pytest.raises(StageError) as caught:
        execute(step("raises", kind="value"))
    assert caught.value.message == "stage raises failed with ValueError: a defect in the stage"
    assert any("raise ValueError" in line for line in caught.value.details)


def test_no_memory_is_said_in_words(execute: Execute) -> None:
    with pytest.raises(StageError, match="stage raises ran out of memory") as caught:
        execute(step("raises", kind="memory"))
    assert caught.value.details == ()  # where in the code it happened is no help


def test_a_stage_that_exits_is_an_error(execute: Execute) -> None:
    with pytest.raises(StageError, match="failed with SystemExit: 3"):
        execute(step("raises", kind="exit"))


def test_an_optional_stage_that_dies_is_a_warning(execute: Execute, model: Path, events: list[Event]) -> None:
    for _ in range(2):
        outcome = execute(step("flaky"), step("count", "flaky"))
        assert outcome["flaky"].path == model
        assert not outcome["flaky"].cached
        assert outcome["count"].facts["bytes"] == 7
    finished = [event for event in events if isinstance(event, StepFinished) and event.step == "flaky"]
    (note,) = finished[0].notes
    assert note.level == "warning"
    assert note.text.startswith("flaky failed and was skipped; its input is used unchanged: stage flaky crashed")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("symlink", "the stage left a link, 'model.onnx'"),
        ("hardlink", "the stage left a link, 'model.onnx'"),
        ("escape", "names '../escaped' as its result"),
        ("nothing", "names 'model.onnx' as its result, but wrote no such file"),
    ],
)
def test_a_stage_that_breaks_its_contract_is_refused(execute: Execute, cache: Cache, how: str, message: str) -> None:
    with pytest.raises(StageError, match=message):
        execute(step("sloppy", how=how))
    assert not list((cache.root / "records").rglob("*.json"))


def test_when_one_step_fails_the_others_are_ended(execute: Execute) -> None:
    started = time.monotonic()
    with pytest.raises(StageError, match="crash"):
        execute(step("patient"), step("crash"))
    assert time.monotonic() - started < 10


@POSIX
def test_a_file_over_the_limit_is_not_called_a_full_disk(execute: Execute) -> None:
    with pytest.raises(StageError) as caught:
        execute(step("fill", limit=1 << 16))
    assert caught.value.message == "a file exceeded the size limit of this process: stage fill failed"
    assert "ulimit -f" in (caught.value.hint or "")


def test_a_full_disk_while_storing_leaves_nothing(
    execute: Execute, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(RecordStore, "put", full)
        with pytest.raises(StageError, match=r"no space left on .*: storing the result of stage grow failed"):
            execute(step("grow"))
    assert not list((cache.root / "records").rglob("*.json"))
    assert not execute(step("grow"))["grow"].cached


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB, where we may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], check=False, capture_output=True
        )
    except OSError:
        pytest.skip("no mount on this system")
    if made.returncode != 0:
        pytest.skip("a small disk needs the right to mount")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_on_a_really_full_disk_the_build_ends_clean_and_works_again_later(small_disk: Path, model: Path) -> None:
    with open_cache(str(small_disk / "cache")) as cache, Executor(cache) as executor:
        sources = {"model": digest_source(model, (), cache)}
        with pytest.raises(StageError, match=r"no space left on .* free of .*: stage fill failed"):
            executor.execute((step("fill", bytes=8 << 20),), sources, Reporter(ignore, "x"))
        outcome = executor.execute((step("fill", bytes=1 << 20),), sources, Reporter(ignore, "x"))["fill"]
        assert outcome.path.stat().st_size == 1 << 20


def test_events_of_a_listener_that_fails_end_the_build(executor: Executor, sources: Mapping[str, Source]) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError(str(event))

    with pytest.raises(RuntimeError, match="StepStarted"):
        executor.execute((step("grow"),), sources, Reporter(broken, "x"))


@pytest.mark.parametrize(("first", "second"), [(0.0, 0.3), (0.3, 0.0)])
def test_of_two_that_fail_side_by_side_the_earlier_in_the_plan_is_reported(
    execute: Execute, first: float, second: float
) -> None:
    """Whichever is quicker, so that the same bad model ends with the same exit code each time."""
    with pytest.raises(ModelError, match="the model is bad"):
        execute(
            step("raises", id="a", kind="model", after=first),
            step("raises", id="b", kind="value", after=second),
        )
    with pytest.raises(StageError):
        execute(
            step("raises", id="a", kind="value", after=first),
            step("raises", id="b", kind="model", after=second),
        )
