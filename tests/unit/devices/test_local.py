"""Programs of this machine: what they see, how they end, and what is read of them."""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path

import pytest

from bundler.devices.contract import Command
from bundler.devices.local import LocalDevice, see_facts

POSIX = pytest.mark.skipif(os.name != "posix", reason="sessions of processes are POSIX")


def run(code: str, seconds: float = 60.0, **environment: str) -> tuple[int | None, str]:
    command = Command(argv=(sys.executable, "-c", code), seconds=seconds, environment=environment)
    outcome = LocalDevice(facts=see_facts()).run(command)
    return outcome.code, outcome.output


def test_it_says_what_it_is() -> None:
    facts = see_facts()
    assert (facts.system, facts.machine) == (platform.system(), platform.machine())
    assert facts.record("onnxruntime 1.0").processor == platform.machine(), "no name that another of its kind has not"
    assert facts.describe()


def test_a_program_has_a_home_of_its_own_and_what_its_command_names() -> None:
    code = "import os; print(os.environ['HOME'] == os.getcwd(), os.environ['MORE'], os.getcwd())"
    assert run(code, MORE="this") == (0, "True this ~\n")


@POSIX
def test_a_program_whose_time_is_over_ends_with_all_that_it_started() -> None:
    code = "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)"
    ended, output = run(code, seconds=3.0)
    assert ended is None
    until = time.monotonic() + 10
    while _runs(int(output)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _runs(int(output))


def _runs(number: int) -> bool:
    try:
        os.kill(number, 0)
        state = Path(f"/proc/{number}/stat")
        return not state.is_file() or ") Z" not in state.read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_files_stay_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("what is here")
    there = LocalDevice(facts=see_facts()).put(tmp_path / "given")
    assert Path(there).read_text() == "what is here"
