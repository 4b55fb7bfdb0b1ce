"""Processes that we started: ending one with all that it started itself, and the name of what ended one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import Any


def end_session(process: subprocess.Popen[Any]) -> None:
    """Kill a process that has a session of its own (`start_new_session`), and all that is in it."""
    if sys.platform == "win32":
        subprocess.run(("taskkill", "/F", "/T", "/PID", str(process.pid)), capture_output=True, check=False)
    elif process.returncode is None:  # else the number may be another's by now
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


def name_signal(number: int) -> str:
    """`SIGKILL`, or `signal 35` where Python has no name for it, as for those of real time."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
