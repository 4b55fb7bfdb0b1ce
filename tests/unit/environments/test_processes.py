"""Waiting for a process: its exit code, or that its time is over."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bundler.environments.processes import await_end, end_session


def start(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen((sys.executable, "-c", code), start_new_session=True)


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
