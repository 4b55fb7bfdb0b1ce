"""What a kind of device gives: how a bundle is run somewhere. One Protocol each; kinds share no base class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from bundler.environments.sandbox import Sandbox
from bundler.environments.survey import ToolStatus
from bundler.model.errors import UsageError
from bundler.model.proof import Proof, RanOn
from bundler.support.text import format_bytes

Runs = Literal["programs", "pages", "classes"]
"""What a device starts: programs, pages of a web bundle, or classes for a Java virtual machine."""

_STARTED: Mapping[Runs, str] = {"programs": "programs", "pages": "pages of web bundles", "classes": "Java classes"}


def drop_line(line: str) -> None:
    """Ignore a line of output."""
    del line


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a bundle asks of a device: one of these `systems` and `machines`, as `platform.system` and
    `platform.machine` name them (none: any will do). `target` is the id of its target, whose profile may say more.
    With `here`, it brings no runtime: only what is installed on this machine runs it. With `stands_in`, its own code
    also runs on machines of other kinds, in place of the device.
    """

    runs: Runs
    systems: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    target: str = ""
    here: bool = False
    stands_in: bool = False

    def fits(self, system: str, machine: str) -> bool:
        """Whether a device of this kind can run it."""
        machines = [name.lower() for name in self.machines]
        return (not self.systems or system in self.systems) and (not machines or machine.lower() in machines)

    def describe(self) -> str:
        """`Linux or Android on aarch64`, `browsers`."""
        if self.runs == "pages":
            return "browsers"
        return f"{' or '.join(self.systems) or 'any system'} on {' or '.join(self.machines) or 'any processor'}"

    def require_fit(self, facts: Facts) -> None:
        """Raise `UsageError` for a device that was named and runs no such bundles."""
        name, why = facts.name, ""
        fits = self.stands_in or self.fits(facts.system, facts.machine)
        if facts.runs != self.runs or (facts.runs != "pages" and not fits):
            where = "" if facts.runs == "pages" else f" for {facts.system} on {facts.machine}"
            there = f"{_STARTED[facts.runs]}{where}"
            why = f"the bundle is for {self.describe()}, and {name} runs {there}"
        elif self.here and not facts.is_here:
            why = "a bundle of files has no runtime that could start there"
        if why:
            hint = "remove --on: bundler then chooses a device that suits the bundle"
            raise UsageError(f"--on {name}: {why}", hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is there. `name` is that of its kind; `system` and `machine` are named as in `Need`; `processor` is what it
    calls itself, `memory` in bytes (0: not known), `drivers` are those of accelerators. `level` is what a run there
    proves, and `place` where that is, as `under emulation of cortex-a76` (empty: on this machine).

    With `is_here`, what is installed here runs there. A Python of the device's own (`python`, as `3.11`; empty: none)
    is started as `python3`, and takes wheels for `wheel_platform`, in uv's words.
    """

    name: str
    system: str
    machine: str
    runs: Runs = "programs"
    processor: str = ""
    memory: int = 0
    drivers: tuple[str, ...] = ()
    level: Proof = "executed"
    place: str = ""
    is_here: bool = False
    python: str = ""
    wheel_platform: str = ""

    def record(self, runtime: str) -> RanOn:
        """What a manifest says of a run there: nothing that two machines of one kind have differently."""
        processor = self.processor if self.level == "emulated" else self.machine
        return RanOn(device=self.name, system=self.system, processor=processor, runtime=runtime)

    def describe(self) -> str:
        """What a report says of it: `Intel(R) Xeon(R) CPU @ 2.80GHz, 24 GB of memory`."""
        memory = f"{format_bytes(self.memory)} of memory" if self.memory else ""
        drivers = f"drivers of {', '.join(self.drivers)}" if self.drivers else ""
        return ", ".join(filter(None, (self.processor or self.machine, memory, drivers)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run: a program and its arguments, or a page. `environment` is what it sees besides the little that every
    program needs; after `seconds` it is ended, with all that it started. It may write to a home of its own, and to the
    folders `writable`. `on_line` gets each line of its output as it comes, from devices that stream it.
    """

    argv: tuple[str, ...]
    seconds: float
    environment: Mapping[str, str] = field(default_factory=dict)
    writable: tuple[Path, ...] = ()
    on_line: Callable[[str], None] = drop_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How it ended, and the last that it said. `code` is negative for a signal, None when its time was over."""

    code: int | None
    output: str
    errors: str
    seconds: float


class Device(Protocol):
    """An open device."""

    facts: Facts

    def put(self, source: Path, name: str = "") -> str:
        """Let what runs there read a file or folder of this machine; returns its path there. `name` is where it
        is wanted, for what asks for it by name.
        """
        ...

    def run(self, command: Command) -> Outcome:
        """Run one command to its end. Raises `EnvironmentMissingError` when the device does not start any."""
        ...


@runtime_checkable
class Fetching(Protocol):
    """A device that has files of its own, and gives back what its programs wrote."""

    def fetch(self, place: str, target: Path) -> None:
        """Copy a folder of the device's, at the path that `put` returned, into the folder `target` of this machine. A
        link is copied as one. Raises `OSError` where it cannot.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a device is opened for and with. `setting` is what the user wrote after the device's name; `say` shows a
    message to the user. In a `sandbox`, nothing runs outside of it.
    """

    need: Need
    cache_root: Path
    say: Callable[[str], None]
    setting: str = ""
    sandbox: Sandbox | None = None


class Kind(Protocol):
    """A kind of device, as it registers."""

    def suits(self, need: Need) -> bool:
        """Whether a bundle that asks for this is run there when no device was named, if one is here."""
        ...

    def open(self, opening: Opening) -> AbstractContextManager[Device]:
        """The device, for as long as the context lasts. Raises `DeviceMissingError` when it is not here, `UsageError`
        for a setting that it does not take.
        """
        ...

    def examine(self, cache_root: Path) -> ToolStatus:
        """What `bundler doctor` shows of it; changes nothing."""
        ...
