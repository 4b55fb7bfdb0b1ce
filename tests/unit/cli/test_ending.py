"""Signals of a real process: what it does when it is reported to end, once, twice, or by a terminal that is gone."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bundler.cli.ending import end_in_order

SCRIPT = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.{before})
from bundler.cli.ending import end_in_order
end_in_order()
try:
    print("ready", flush=True)
    time.sleep({seconds})
except KeyboardInterrupt:
    print("interrupted", flush=True)
    time.sleep(0.5)
print("cleaned up", file=sys.stderr, flush=True)
Path({mark!r}).touch()
"""

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def command(mark: Path, *, before: str = "SIG_DFL", seconds: float = 30) -> list[str]:
    return [sys.executable, "-c", SCRIPT.format(before=before, seconds=seconds, mark=str(mark))]


@pytest.mark.parametrize("again", ENDINGS)
@pytest.mark.parametrize("number", ENDINGS)
def test_a_second_signal_does_not_break_off_the_cleaning_up(
    tmp_path: Path, number: signal.Signals, again: signal.Signals
) -> None:
    mark = tmp_path / "cleaned"
    with subprocess.Popen(command(mark), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == "interrupted\n"
        process.send_signal(again)
        assert process.wait(20) == 0
    assert mark.exists()


def test_what_whoever_started_us_ignores_stays_ignored(tmp_path: Path) -> None:
    mark = tmp_path / "cleaned"
    with subprocess.Popen(command(mark, before="SIG_IGN", seconds=1), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGHUP)
        assert process.stdout.read() == ""
    assert mark.exists()


def test_a_terminal_that_is_closed_does_not_break_off_the_cleaning_up(tmp_path: Path) -> None:
    mark = tmp_path / "cleaned"
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, command(mark))  # noqa: S606 - there is no shell to want
    assert os.read(terminal, 5) == b"ready"
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert mark.exists()


def test_a_second_signal_ends_what_does_not_end_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bundler.cli.ending.PATIENCE", 0.0)
    before = {number: signal.getsignal(number) for number in ENDINGS}
    try:
        end_in_order()
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


EARLY = """
import importlib.abc, os, signal, sys
class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from bundler.cli import main
main()
"""


@pytest.mark.parametrize("module", ["typer", "bundler.cli.commands.doctor"])
def test_an_interruption_during_the_imports_prints_no_traceback(module: str) -> None:
    code = EARLY.format(module=module)
    done = subprocess.run([sys.executable, "-c", code, "doctor"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted; finished steps are kept in the cache\n")
