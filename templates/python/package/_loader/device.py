"""What the device's processor is: a memory layout that was chosen for one may be wrong or slow on another."""

from __future__ import annotations

import platform
import sys

_ENOUGH = 4096
"""Bytes of `/proc/cpuinfo` that hold the first processor; reading all of it takes milliseconds on a large machine."""

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
"""Lines that say what the processor is; the others say what it is doing (its clock) or where it sits."""


def identify_processor() -> str:
    """The same text for as long as the processor and what it can do stay the same."""
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
    """The machine and the system's version: a processor is not replaced without a new start, mostly on a new system."""
    import os

    return " ".join((platform.machine(), platform.version(), os.environ.get("PROCESSOR_IDENTIFIER", "")))
