"""Installs the packages of a lock into an environment, CPU builds included.

Plain `torch` for Linux is built for CUDA and brings gigabytes that no stage of ours uses. Locks pin the build for CPUs
instead (`torch==VERSION+cpu`, by the digests of its official wheels), which general indexes do not have. The user's
own index and the folders of uv's configuration are asked first, then the index of CPU builds that uv knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bundler.environments.lockfiles import Lock, render_pins
from bundler.environments.tools import run_uv
from bundler.model.errors import EnvironmentMissingError

CPU_BUILD = "+cpu"
# Copies: uv's cache is the user's, and a file that is linked to it changes with it.
_RULES = ("--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--link-mode", "copy")


def install_lock(lock: Lock, interpreter: Path, requirements: Path) -> None:
    """Install what counts here of `lock`; it is written to `requirements` first. Raises `EnvironmentMissingError`."""
    requirements.write_text(render_pins(lock.pins), encoding="utf-8")
    command = ("pip", "install", *_RULES, "--python", str(interpreter), "-r", str(requirements))
    doing = f"install the packages of {lock.name}"
    special = cpu_builds(lock)
    try:
        run_uv(command, doing)
    except EnvironmentMissingError as first:
        if not special:
            raise
        _install_with_uvs_own_index((*command, "--torch-backend", "cpu"), doing, special, first)


def cpu_builds(lock: Lock) -> tuple[str, ...]:
    """The pins that count here and exist only as builds for CPUs, like `torch==2.13.0+cpu`."""
    return tuple(f"{pin.name}=={pin.version}" for pin in lock.select() if pin.version.endswith(CPU_BUILD))


def _install_with_uvs_own_index(
    command: Sequence[str], doing: str, special: Sequence[str], first: EnvironmentMissingError
) -> None:
    try:
        run_uv(command, doing)
    except EnvironmentMissingError as second:
        raise EnvironmentMissingError(
            first.message,
            details=("from the configured indexes:", *first.details, "from uv's own index:", *second.details),
            hint=f"without a network, put the wheel of {', '.join(special)} into a folder and name it in UV_FIND_LINKS "
            "(or in pip's find-links)",
        ) from second
