"""Identifies this machine from files of the system, without calling a driver."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bundler.support.files import read_beginning
from bundler.support.platforms import name_architecture, name_system


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine in the terms of profiles (`linux`, `x64`; empty if unknown). `clues` are the names of its parts, the
    most specific first: the board, the GPU, the CPU.
    """

    system: str
    architecture: str
    clues: tuple[str, ...] = ()


def see_machine(root: Path = Path("/")) -> Machine:
    """The machine that bundler runs on. `root` is the root of the system's files."""
    return Machine(
        system=name_system(platform.system()),
        architecture=name_architecture(platform.machine()),
        clues=tuple(dict.fromkeys(_see_parts(root))),
    )


def _see_parts(root: Path) -> Iterator[str]:
    yield from filter(None, [read_beginning(root / "proc/device-tree/model").strip("\0\n ")])
    for card in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        yield from re.findall(r"^Model:\s*(\S.*?)\s*$", read_beginning(card), re.MULTILINE)
    yield from re.findall(r"^model name\s*:\s*(\S.*?)\s*$", read_beginning(root / "proc/cpuinfo"), re.MULTILINE)[:1]
