"""How we end when we are told to: in order, once, and with no word to a terminal that is gone."""

from __future__ import annotations

import os
import signal
import sys
import time
from types import FrameType
from typing import Final

PATIENCE: Final = 5.0
"""Seconds for cleaning up in which further signals are taken for the same one: people press Ctrl-C more than once."""
_OUTPUTS: Final = (1, 2)


def end_in_order() -> None:
    """Let SIGINT, SIGTERM and SIGHUP (a closed terminal) raise `KeyboardInterrupt`, so that nothing half-written stays.

    One that whoever started us ignores (`nohup`, the background jobs of a script) stays ignored; SIGTERM never does.
    """
    ending = _Ending()
    signal.signal(signal.SIGTERM, ending)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, ending)
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, ending)


class _Ending:
    """The handler of all of them."""

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
        """What is written to a terminal that was closed is an error, which would break off the cleaning up."""
        for output in self._terminals:
            if not os.isatty(output):
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, output)
                os.close(nothing)
