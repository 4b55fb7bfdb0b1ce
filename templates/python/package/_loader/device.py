"""Identify the device's processor: a memory layout chosen for one processor may be wrong or slow on another."""

from __future__ import annotations

import platform
import sys

_ENOUGH = 4096
"""Bytes of `/proc/cpuinfo` that hold the first processor; reading all takes milliseconds on a large machine."""

_FACTS = frozenset(
    (
        b"vendor_id",
        b"cpu family",
        b"model",
        b"model name",
        b"stepping",
        b"flags",
        b"Features",
        b"CPU implementer",
        b"CPU architecture",
        b"CPU variant",
        b"CPU part",
        b"CPU revision",
        b"isa",
        b"uarch",
    )
)
"""Lines that identify the processor; the others give its state (the clock) or its position."""


def identify_processor() -> str:
    """A text that changes only with the processor or its features."""
    if sys.platform == "linux":
        try:
            with open("/proc/cpuinfo", "rb", buffering=0) as stream:
                return _choose_facts(stream.read(_ENOUGH))
        except OSError:
            return _ask_platform()
    return _ask_platform()


def _choose_facts(text: bytes) -> str:
    first = text.partition(b"\n\n")[0]
    lines = [line for line in first.split(b"\n") if line.partition(b":")[0].strip() in _FACTS]
    return b"\n".join(lines).decode("ascii", "replace")


def _ask_platform() -> str:
    """The machine type and the system's version: a new processor usually comes with a new system."""
    import os

    return " ".join((platform.machine(), platform.version(), os.environ.get("PROCESSOR_IDENTIFIER", "")))
