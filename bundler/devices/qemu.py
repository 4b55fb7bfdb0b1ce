"""A Linux of another processor, by QEMU's user emulation of its programs. Outputs are valid there; times are not."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bundler.devices.contract import Command, Facts, Need, Opening, Outcome
from bundler.devices.emulation import (
    EmulatedPython,
    emulated_python,
    find_emulator,
    find_images,
    image_ready,
    make_image,
)
from bundler.devices.emulation.packages import EmulationError
from bundler.devices.emulation.processor import CORES
from bundler.devices.programs import run_program
from bundler.environments.survey import ToolStatus
from bundler.model.errors import BundlerError, DeviceMissingError, UsageError
from bundler.profiles.resolve import resolve_target

_SYSTEM = "Linux"
"""User-mode emulation translates a processor, not an operating system."""

_PYTHON = "python3"
_INSTALL = "install QEMU's user emulation (Debian, Ubuntu: qemu-user-static)"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedDevice:
    """Its programs are processes of this machine, and read its files where they lie."""

    facts: Facts
    python: EmulatedPython

    def put(self, source: Path, name: str = "") -> str:
        """The file or folder itself."""
        del name
        return str(source)

    def run(self, command: Command) -> Outcome:
        """Run a program of that processor; `python3` is the image's own."""
        program, *arguments = command.argv
        *emulator, python = self.python.argv
        argv = (*emulator, python if program == _PYTHON else program, *arguments)
        return run_program(replace(command, argv=argv, environment={**command.environment, **self.python.environment}))


@dataclass(frozen=True, slots=True, kw_only=True)
class QemuKind:
    """The emulation of one processor."""

    name: str
    machine: str

    def suits(self, need: Need) -> bool:
        """Whether the bundle is for Linux on this processor, and this machine is a Linux."""
        return need.runs == "programs" and platform.system() == _SYSTEM and need.fits(_SYSTEM, self.machine)

    @contextmanager
    def open(self, opening: Opening) -> Iterator[EmulatedDevice]:
        """Its setting is the core to emulate, else it is the one that the target names."""
        if opening.setting and opening.setting not in CORES:
            raise UsageError(
                f"--on {self.name}: unknown core {opening.setting[:80]!r}", hint=f"one of {', '.join(CORES)}"
            )
        opening.need.require_fit(Facts(name=self.name, system=_SYSTEM, machine=self.machine))
        if opening.sandbox is not None:
            raise DeviceMissingError("--sandbox cannot be used with emulation", hint="remove --sandbox")
        if platform.system() != _SYSTEM or find_emulator(self.machine) is None:
            raise DeviceMissingError(f"no emulator for {self.machine} is installed (qemu-user-static)", hint=_INSTALL)
        core = opening.setting or _find_core(opening.need.target)
        try:
            image = make_image(find_images(opening.cache_root, self.machine), self.machine, opening.say)
            python = emulated_python(image, core)
        except EmulationError as error:
            raise DeviceMissingError(
                "its processor could not be emulated on this machine",
                details=(str(error),),
                hint="`bundler doctor` shows the state of emulation on this machine",
            ) from error
        yield EmulatedDevice(facts=self._describe(python, core), python=python)

    def examine(self, cache_root: Path) -> ToolStatus:
        """Whether the emulator is here, and its Python."""
        path = find_emulator(self.machine)
        image = image_ready(find_images(cache_root, self.machine), self.machine)
        state = f"image {image}" if image else "its Python image is made at the first verification, in seconds"
        return ToolStatus(
            name=f"device {self.name}",
            found=path is not None,
            version=None,
            detail=f"{path}; {state}" if path else "bundles for it are built, but not run here",
            hint=None if path else _INSTALL,
        )

    def _describe(self, python: EmulatedPython, core: str | None) -> Facts:
        return Facts(
            name=self.name,
            system=_SYSTEM,
            machine=self.machine,
            processor=core or self.machine,
            level="emulated",
            place=f"under emulation of {core or self.machine}",
            python=python.version,
            wheel_platform=python.uv_platform,
        )


def _find_core(target: str) -> str | None:
    """The core that the target's profile names. A profile that is not at hand here names none."""
    try:
        return resolve_target(target).platform.cpu
    except BundlerError:
        return None


AARCH64 = QemuKind(name="qemu-aarch64", machine="aarch64")
