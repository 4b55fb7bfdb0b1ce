"""Installs the packages of a lock into an environment, CPU builds included.

Plain `torch` for Linux is built for CUDA and brings gigabytes that no stage of ours uses. Locks pin the build for CPUs
instead (`torch==VERSION+cpu`, by the digests of its official wheels), which general indexes do not have. The user's
own index and the folders of uv's configuration are asked first, then the index of CPU builds that uv knows. Where that
is out of reach (behind a mirror of the general index alone), the general build of the same version is installed, with
the libraries that it cannot be loaded without; the lock has the digest and the size of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bundler.environments.lockfiles import CPU_BUILD, Lock, Pin, render_pins
from bundler.environments.tools import run_uv
from bundler.model.errors import EnvironmentMissingError, IndexUnreachableError
from bundler.support.text import count_things, format_bytes

_RULES = ("--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:")
_COPIED = ("--link-mode", "copy")
"""uv's cache is the user's, and a file that is linked to it changes with it."""
_LINKED = ("--link-mode", "hardlink")
"""Gigabytes are not written twice."""
_OWN_INDEX = ("--torch-backend", "cpu")

Say = Callable[[str], None]


def install_lock(lock: Lock, interpreter: Path, requirements: Path, say: Say) -> tuple[Pin, ...]:
    """Install what counts here of `lock`; it is written to `requirements` first. Returns what was installed.

    Raises `EnvironmentMissingError`.
    """
    install = _Installation(lock.name, interpreter, requirements)
    pins, special, general = lock.select(), cpu_builds(lock), lock.select_general()
    try:
        return install(pins, *_COPIED)
    except IndexUnreachableError:
        raise  # nobody said that there is no such build
    except EnvironmentMissingError as error:
        if not special:
            raise
        failed = [("from the configured indexes:", error)]
    say(f"your package indexes do not have {', '.join(special)}: trying uv's own index of CPU builds")
    try:
        return install(pins, *_COPIED, *_OWN_INDEX)
    except EnvironmentMissingError as error:
        failed.append(("from uv's own index:", error))
    if general and _lacks(failed[0][1], special):
        say(_describe_general(pins, general, special))
        try:
            return install(general, *_LINKED)
        except EnvironmentMissingError as error:
            failed.append(("the general build, from the configured indexes:", error))
    raise _join(failed, special) from failed[-1][1]


def cpu_builds(lock: Lock) -> tuple[str, ...]:
    """The pins that count here and exist only as builds for CPUs, like `torch==2.13.0+cpu`."""
    return tuple(f"{pin.name}=={pin.version}" for pin in lock.select() if pin.version.endswith(CPU_BUILD))


class _Installation:
    def __init__(self, name: str, interpreter: Path, requirements: Path) -> None:
        self._doing = f"install the packages of {name}"
        self._requirements = requirements
        self._place = ("--python", str(interpreter), "-r", str(requirements))

    def __call__(self, pins: tuple[Pin, ...], *options: str) -> tuple[Pin, ...]:
        self._requirements.write_text(render_pins(pins, markers=False), encoding="utf-8")
        run_uv(("pip", "install", *_RULES, *self._place, *options), self._doing)
        return pins


def _lacks(error: EnvironmentMissingError, special: Sequence[str]) -> bool:
    """Whether the indexes answered, and have other builds only: in uv's words."""
    said = " ".join(error.details)
    return all(f"no version of {build}" in said for build in special)


def _describe_general(pins: Sequence[Pin], general: Sequence[Pin], special: Sequence[str]) -> str:
    known = {(pin.name, pin.version) for pin in pins}
    added = [pin for pin in general if (pin.name, pin.version) not in known]
    instead = ", ".join(build.removesuffix(CPU_BUILD) for build in special)
    more = count_things(len(added) - len(special), "package")
    return (
        f"{', '.join(special)} cannot be downloaded here: installing the general build {instead} and {more} that it "
        f"requires, {format_bytes(sum(pin.size for pin in added))} to download (less where uv's cache has them)"
    )


def _join(failed: Sequence[tuple[str, EnvironmentMissingError]], special: Sequence[str]) -> EnvironmentMissingError:
    return EnvironmentMissingError(
        failed[0][1].message,
        details=tuple(line for where, error in failed for line in (where, *error.details)),
        hint=f"without a network, put the wheel of {', '.join(special)} into a folder, and set UV_FIND_LINKS to it "
        "(or in pip's find-links)",
    )
