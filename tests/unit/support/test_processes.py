"""Waiting for a process: its exit code, or that its time is over."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bundler.support.processes import Child, await_end, end_all, end_session, run_process

needs_sessions = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no sessions to end")


def start(code: str) -> Child:
    return Child((sys.executable, "-c", code))


@pytest.mark.parametrize("told_at_once", [True, False])
def test_the_exit_code_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch, *, told_at_once: bool) -> None:
    if not told_at_once:

        def refuse(_: int) -> int:
            raise OSError("this kernel has none")

        monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    with start("import sys, time; time.sleep(0.2); sys.exit(7)") as process:
        assert await_end(process, 60.0) == 7
        assert await_end(process, 60.0) == 7


def test_a_process_that_runs_longer_is_reported_of_and_can_be_ended() -> None:
    with start("import time; time.sleep(600)") as process:
        with pytest.raises(subprocess.TimeoutExpired):
            await_end(process, 0.2)
        end_session(process)
        assert await_end(process, 60.0) < 0


def is_gone(number: int) -> bool:
    for _ in range(250):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{number}/stat")
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True  # dead; whoever adopted it has not asked yet
        time.sleep(0.02)
    return False


PARENT = """
import sys
from bundler.support.processes import Child
process = Child(("/bin/sh", "-c", "sleep 600 & echo $! $$; wait"))
process.wait()
"""


@needs_sessions
def test_what_a_process_started_ends_when_it_is_killed() -> None:
    """`kill -9`, which nothing can prepare for: the program, and what that has started."""
    with subprocess.Popen((sys.executable, "-c", PARENT), stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        numbers = [int(word) for word in parent.stdout.readline().split()]
        parent.kill()
    assert len(numbers) == 2
    assert all(map(is_gone, numbers))


@needs_sessions
def test_what_a_program_leaves_behind_ends_with_it() -> None:
    said = run_process(("/bin/sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"), text=True)
    assert is_gone(int(said.stdout))


@needs_sessions
def test_all_that_runs_can_be_ended() -> None:
    with start("import time; time.sleep(600)") as first, start("import time; time.sleep(600)") as second:
        end_all()
        assert (await_end(first, 60.0), await_end(second, 60.0)) == (-9, -9)


def test_input_output_and_exit_code_are_those_of_the_program() -> None:
    code = "import sys; print(sys.stdin.read().upper()); print('why', file=sys.stderr); sys.exit(3)"
    done = run_process((sys.executable, "-c", code), data="text", text=True)
    assert (done.returncode, done.stdout.strip(), done.stderr.strip()) == (3, "TEXT", "why")
    assert run_process((sys.executable, "-c", "import sys; print(len(sys.stdin.read()))"), text=True).stdout == "0\n"


def test_a_program_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_process((str(tmp_path / "nothing"),))
    (tmp_path / "text").write_text("no program")
    with pytest.raises(OSError, match="text"):
        run_process((str(tmp_path / "text"),))


@needs_sessions
def test_no_descriptor_is_left(tmp_path: Path) -> None:
    gc.collect()  # what other tests left is closed now, not while this one counts
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(20):
        run_process(("/bin/sh", "-c", ":"))
        with pytest.raises(FileNotFoundError):
            run_process((str(tmp_path / "nothing"),))
    assert len(list(Path("/dev/fd").iterdir())) <= before
