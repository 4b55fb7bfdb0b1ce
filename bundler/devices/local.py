"""The machine that bundler runs on, as it is."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bundler.devices.contract import Command, Facts, Need, Opening, Outcome
from bundler.devices.programs import run_program
from bundler.devices.registry import LOCAL
from bundler.environments.sandbox import Sandbox
from bundler.environments.survey import ToolStatus
from bundler.model.errors import UsageError
from bundler.support.files import read_beginning

_CPUINFO = Path("/proc/cpuinfo")


@dataclass(slots=True, kw_only=True)
class LocalDevice:
    """Programs are processes of this machine, and read its files where they lie; in a sandbox, what was put alone."""

    facts: Facts
    sandbox: Sandbox | None = None
    _shown: list[Path] = field(default_factory=list)

    def put(self, source: Path, name: str = "") -> str:
        """The file or folder itself."""
        del name
        self._shown.append(source)
        return str(source)

    def run(self, command: Command) -> Outcome:
        """Run it here."""
        return run_program(command, self.sandbox.showing(self._shown) if self.sandbox else None)


class LocalKind:
    """The machine that bundler runs on."""

    def suits(self, need: Need) -> bool:
        """Whether this machine is of the kind that the bundle is for."""
        return need.runs == "programs" and need.fits(platform.system(), platform.machine())

    @contextmanager
    def open(self, opening: Opening) -> Iterator[LocalDevice]:
        """It is always here. Raises `UsageError` for a setting."""
        if opening.setting:
            raise UsageError(f"--on local does not accept a setting: {opening.setting[:80]!r}", hint="use --on local")
        yield LocalDevice(facts=see_facts(), sandbox=opening.sandbox)

    def examine(self, cache_root: Path) -> ToolStatus:
        """What this machine is."""
        del cache_root
        facts = see_facts()
        detail = f"{facts.system} on {facts.machine}{f', {facts.processor}' if facts.processor else ''}"
        return ToolStatus(name="device local", found=True, version=None, detail=detail, hint=None)


def see_facts() -> Facts:
    """What can be seen of this machine, cheaply and safely: files of the system are read, no driver is called."""
    return Facts(
        name=LOCAL,
        system=platform.system(),
        machine=platform.machine(),
        processor=_name_processor(),
        memory=_count_memory(),
        drivers=tuple(_list_drivers()),
        is_here=True,
    )


def _name_processor() -> str:
    found = re.findall(r"^model name\s*:\s*(\S.*?)\s*$", read_beginning(_CPUINFO), re.MULTILINE)
    return found[0] if found else ""


def _count_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        return 0


def _list_drivers() -> Iterator[str]:
    """Drivers of GPUs, as far as Linux lists them in /dev."""
    if Path("/dev/nvidiactl").exists():
        yield "nvidia"
    yield from (path.name for path in sorted(Path("/dev/dri").glob("renderD*")))


KIND = LocalKind()
