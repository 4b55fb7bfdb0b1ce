"""Interruptions that wait until what has begun is finished and counted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

_NAMES: Final = ("SIGINT", "SIGTERM", "SIGHUP")
"""The signals that end a program in order; Windows lacks the last."""


@contextmanager
def postponable() -> Iterator[Callable[[], None]]:
    """From the call of the yielded function to the end of the block, signals that end the program wait.

    They are handled at the end, as their handlers would have. Only the main thread is interrupted by signals: in
    others nothing changes.
    """
    handlers: dict[int, Any] = {}
    arrived: list[tuple[int, FrameType | None]] = []

    def begin() -> None:
        if handlers or threading.current_thread() is not threading.main_thread():
            return
        for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
            if callable(handler := signal.getsignal(number)):
                handlers[number] = handler
                signal.signal(number, lambda number, frame: arrived.append((number, frame)))

    try:
        yield begin
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in arrived:
            handlers[number](number, frame)
