"""Waits for, kills and describes the end of processes that bundler started."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from typing import Any


def await_end(process: subprocess.Popen[Any], seconds: float) -> int:
    """The exit code of a process, once it has ended. Raises `TimeoutExpired` after so many `seconds`.

    As `process.wait`, which with a limit polls every 50 ms; on Linux the end is noticed at once.
    """
    if sys.platform == "linux" and process.returncode is None:
        with contextlib.suppress(OSError):  # a kernel before 5.3, or one more file than may be open
            handle = os.pidfd_open(process.pid)
            try:
                ended = select.poll()
                ended.register(handle, select.POLLIN)
                seconds = 0.0 if ended.poll(seconds * 1000) else 0.001
            finally:
                os.close(handle)
    return process.wait(seconds)


def end_session(process: subprocess.Popen[Any]) -> None:
    """Kill a process that has a session of its own (`start_new_session`), and all that is in it."""
    if sys.platform == "win32":
        subprocess.run(("taskkill", "/F", "/T", "/PID", str(process.pid)), capture_output=True, check=False)
    elif process.returncode is None:  # else the number may be another's by now
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


def name_signal(number: int) -> str:
    """`SIGKILL`, or `signal 35` where Python has no name for it, as for real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
