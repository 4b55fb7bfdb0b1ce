"""Signal handling: end in order, once, and write nothing to a closed terminal."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import Final

PATIENCE: Final = 5.0
"""Seconds of clean-up during which further signals count as the same one: people press Ctrl-C more than once."""
INTERRUPTED: Final = 130
"""128 + SIGINT, as shells report it."""
_OUTPUTS: Final = (1, 2)


def end_in_order() -> None:
    """Let SIGINT, SIGTERM and SIGHUP (a closed terminal) raise `KeyboardInterrupt`, so that nothing half-written stays.

    A signal that the parent process ignores (`nohup`, background jobs of a script) stays ignored, except SIGTERM.
    """
    ending = _Ending()
    signal.signal(signal.SIGTERM, ending)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, ending)
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, ending)


def report_interrupt() -> int:
    """Report an interruption by the user."""
    with suppress(OSError):  # only the exit code remains
        sys.stderr.write("interrupted; finished steps are kept in the cache\n")
    return INTERRUPTED


class _Ending:
    """The handler of these signals."""

    def __init__(self) -> None:
        self._terminals = tuple(output for output in _OUTPUTS if os.isatty(output))
        self._began = float("-inf")

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self._silence()
        now = time.monotonic()
        if now - self._began < PATIENCE:
            return
        self._began = now
        raise KeyboardInterrupt

    def _silence(self) -> None:
        """Writing to a closed terminal is an error, which would interrupt the clean-up."""
        for output in self._terminals:
            if not os.isatty(output):
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, output)
                os.close(nothing)
