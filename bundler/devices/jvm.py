"""The Java virtual machine of this machine: where bundles with a loader in Kotlin run.

A bundle for the JVM is executed on it. What is made for Android runs on it in place of a phone: with the same loader
and the same API of the runtime, on another processor.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bundler.devices.contract import Command, Facts, Need, Opening, Outcome
from bundler.devices.local import see_facts
from bundler.devices.programs import run_program
from bundler.environments.sandbox import Sandbox
from bundler.environments.survey import ToolStatus
from bundler.model.errors import DeviceMissingError, EnvironmentMissingError, UsageError
from bundler.model.paths import real_path
from bundler.toolchains.java import JAVA
from bundler.toolchains.registry import FoundToolchain, find_toolchain

NAME = "jvm"


@dataclass(slots=True, kw_only=True)
class JvmDevice:
    """Its programs are processes of this machine, and read its files where they lie; in a sandbox, what was put alone.
    The first argument of a command is one of `java`.
    """

    facts: Facts
    java: FoundToolchain
    sandbox: Sandbox | None = None
    _shown: list[Path] = field(default_factory=list)

    def put(self, source: Path, name: str = "") -> str:
        """The file or folder itself."""
        del name
        self._shown.append(source)
        return str(source)

    def run(self, command: Command) -> Outcome:
        """Run `java` with these arguments."""
        program = real_path(self.java.program)
        sandbox = self.sandbox.showing([*self._shown, *_list_folders(program)]) if self.sandbox else None
        return run_program(replace(command, argv=(str(program), *command.argv)), sandbox)


def _list_folders(program: Path) -> tuple[Path, ...]:
    """What Java reads to start: its own folder, and what a distribution keeps of it in /etc."""
    home = program.parent.parent
    settings = (real_path(path) for path in (home / "conf", home / "lib" / "security") if path.exists())
    return (home, *settings, *sorted(Path("/etc").glob("java*")))


class JvmKind:
    """The Java virtual machine that is first on the PATH."""

    def suits(self, need: Need) -> bool:
        """Whether the bundle has classes for this machine, or for a system in whose place this one can run them."""
        return need.runs == "classes" and (need.stands_in or need.fits(platform.system(), platform.machine()))

    @contextmanager
    def open(self, opening: Opening) -> Iterator[JvmDevice]:
        """Raises `DeviceMissingError` without Java, and `UsageError` for a setting."""
        if opening.setting:
            raise UsageError(
                f"--on {NAME} does not accept a setting: {opening.setting[:80]!r}", hint=f"use --on {NAME}"
            )
        try:
            java = find_toolchain(JAVA.name)
        except EnvironmentMissingError as error:
            raise DeviceMissingError(error.message, hint=error.hint) from error
        here = opening.need.fits(platform.system(), platform.machine())
        facts = replace(see_facts(), name=NAME, runs="classes", level="executed" if here else "stand-in")
        yield JvmDevice(facts=facts, java=java, sandbox=opening.sandbox)

    def examine(self, cache_root: Path) -> ToolStatus:
        """Whether Java is here."""
        del cache_root
        try:
            java = find_toolchain(JAVA.name)
        except EnvironmentMissingError as error:
            detail = f"{error.message}: bundles for Java and Android are not run here"
            return ToolStatus(name=f"device {NAME}", found=False, version=None, detail=detail, hint=error.hint)
        return ToolStatus(name=f"device {NAME}", found=True, version=java.version, detail=str(java.program), hint=None)


KIND = JvmKind()
