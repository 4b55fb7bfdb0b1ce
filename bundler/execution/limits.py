"""Limits on memory, file size and time of the processes that bundler starts.

The limit is nine tenths of what the machine has: beyond it, the system would kill arbitrary processes, or the disk
would be full. `RLIMIT_DATA` counts memory that a process allocates. It does not count mapped files, such as weights, or
reserved address space, such as the terabytes of GPU drivers (`RLIMIT_AS` counts both).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bundler.model.errors import UsageError
from bundler.model.stage import StageSpec

MEMORY_VARIABLE: Final = "BUNDLER_MEMORY_LIMIT"
"""Memory of each process that runs a model: `12G`, `800M`, or `off`."""
TIME_VARIABLE: Final = "BUNDLER_TIME_LIMIT"
"""Time limit of every step in seconds, instead of its stage's own."""

_SHARE: Final = 0.9
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_LEAST_MEMORY: Final = 256 << 20
"""The least limit in bytes: a worker needs about as much to load its tools."""
_LEAST_FILE: Final = 1 << 30
"""The least limit in bytes; a disk with less free space reports that it is full."""
_CGROUPS: Final = ("memory.max", "memory.limit_in_bytes")
"""The limit of a control group, in the second and the first version of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bytes of memory and of each file that a process may take; -1 is without a limit."""

    memory: int
    file: int

    @property
    def arguments(self) -> tuple[str, str]:
        """The limits as a worker reads them."""
        return str(self.memory), str(self.file)


def find_limits(folder: Path) -> Limits:
    """For processes that write to `folder`. Raises `UsageError` for a setting that is no size."""
    return Limits(memory=_memory_limit(), file=_file_limit(folder))


def bound_command(command: Sequence[str], limits: Limits) -> tuple[str, ...]:
    """A command that runs `command` within `limits` and without a core dump, where the system has a shell for that."""
    if os.name != "posix":
        return tuple(command)
    memory, file = (
        "" if size < 0 else str(size // unit) for size, unit in ((limits.memory, 1 << 10), (limits.file, 512))
    )
    return ("/bin/sh", "-c", _BOUND, "sh", memory, file, *command)


_BOUND: Final = (
    'ulimit -c 0; [ -z "$1" ] || ulimit -d "$1" 2>/dev/null; [ -z "$2" ] || ulimit -f "$2" 2>/dev/null; '
    'shift 2; exec "$@"'
)
"""A lower limit that is already set stays."""


def limit_seconds(spec: StageSpec, size: int) -> float:
    """Seconds for one call of a stage with inputs of `size` bytes. Raises `UsageError` for a setting that is none."""
    given = os.environ.get(TIME_VARIABLE, "")
    if not given:
        return spec.limit_for(size)
    if not re.fullmatch(r"[1-9][0-9]{0,8}", given):
        raise UsageError(
            f"{TIME_VARIABLE}={given[:40]!a} is not a number of seconds", hint=f"for example {TIME_VARIABLE}=7200"
        )
    return float(given)


def _memory_limit() -> int:
    given = os.environ.get(MEMORY_VARIABLE, "").strip()
    if given.lower() == "off":
        return -1
    return _parse(given) if given else int(_machine_memory() * _SHARE)


def _parse(given: str) -> int:
    found = re.fullmatch(r"([0-9]{1,15})\s*([KMGT]?)(?:i?B)?", given, re.IGNORECASE)
    size = int(found[1]) * _UNITS[found[2].upper()] if found else 0
    if size < _LEAST_MEMORY:
        raise UsageError(
            f"{MEMORY_VARIABLE}={given[:40]!a} is not a size of at least {_LEAST_MEMORY >> 20} MB",
            hint=f"for example {MEMORY_VARIABLE}=12G, or {MEMORY_VARIABLE}=off",
        )
    return size


def _machine_memory() -> int:
    """What the machine, or the control group that we are in, has."""
    try:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no such limits either
        return 1 << 60
    return min([whole, *_group_limits()])


def _group_limits() -> Iterator[int]:
    for line in _read(Path("/proc/self/cgroup")).splitlines():
        _, kinds, path = line.split(":", 2)
        root = Path("/sys/fs/cgroup") / ("memory" if "memory" in kinds.split(",") else "")
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            if not folder.is_relative_to(root):
                break
            yield from (int(text) for name in _CGROUPS if (text := _read(folder / name).strip()).isdecimal())


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return ""


def _file_limit(folder: Path) -> int:
    """Nine tenths of the free space: a larger file could not be written, unless it is sparse."""
    for candidate in (folder, *folder.parents):
        try:
            return max(_LEAST_FILE, int(shutil.disk_usage(candidate).free * _SHARE))
        except OSError:
            continue
    return -1
