"""How a bundle is started on a device: installed from its own wheels where we can install, else put beside them."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bundler.devices.contract import Command, Device, Need, Opening
from bundler.emitters.python.interpreters import (
    find_python,
    install,
    install_bundle,
    prepare_environment,
    prepare_site,
)
from bundler.emitters.python.layout import WHEELS, Layout
from bundler.emitters.python.tags import expand_tags
from bundler.emitters.python.wheelhouse import gather_locked, merge_locks
from bundler.emitters.reports import Ending, read_ending
from bundler.environments.lockfiles import Lock
from bundler.environments.sandbox import python_folders
from bundler.execution.temporary import temporary_folder

TIME_LIMIT = 1800.0
"""Time limit in seconds for the golden set of all variants."""

NOTHING = Lock(name="nothing", pins=())

_QUIET: Final = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1", "PYTHONUTF8": "1"}
"""No byte code is written into the bundle, and no packages of the user's are seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How the bundle is started on `device`: the command that replaces `python -m <package>`, its environment
    variables, and the folders that it may write to. `means` and `unrun` are as in `VariantProof`.
    """

    device: Device
    command: tuple[str, ...]
    environment: Mapping[str, str]
    writable: tuple[Path, ...] = ()
    means: str = ""
    unrun: tuple[str, ...] = ()


def state_need(layout: Layout) -> Need:
    """A machine of the system and the processor that the bundle is for."""
    requires = layout.config.pairs[0][1].requires
    return Need(runs="programs", systems=requires.systems, machines=requires.machines, target=layout.config.target)


@contextmanager
def open_launch(
    layout: Layout, device: Device, opening: Opening, *, in_place: bool = False, added: Lock = NOTHING
) -> Iterator[Launch | str]:
    """The command of the bundle, for as long as it is needed, or why no Python there can start it.

    Where packages can be installed, the bundle is, as its README says, or, `in_place`, run in place, if it is a
    folder. Beside its own packages it then finds those that are `added`.
    """
    versions = layout.python_versions
    if not device.facts.is_here:
        version = device.facts.python
        if version not in versions:
            yield f"the device has Python {version or '(none)'}, the bundle is for {', '.join(versions)}"
            return
        started = _start_beside(layout, device, opening)
        how = f"{device.facts.place}, with".strip()
    else:
        found = find_python(versions, opening.cache_root)
        if found is None:
            yield f"no Python {', '.join(versions)} is installed here"
            return
        version, python = found
        shown = (opening.cache_root, layout.root, *python_folders(python))
        for path in shown:
            device.put(path)
        if opening.sandbox is not None:
            opening = replace(opening, sandbox=opening.sandbox.showing(shown))
        if layout.format == "pex":
            started = _start_packed(layout, python)
        else:
            in_place = in_place and layout.artifact is None
            started = _start_installed(layout, version, python, opening, in_place=in_place, added=added)
        how = "in a fresh environment of"
    if not in_place:
        opening.say(f"verifying {how} Python {version}")
    with started as (command, environment, writable):
        yield Launch(
            device=device,
            command=command,
            environment=environment,
            writable=writable,
            means=f"Python {version}",
            unrun=tuple(f"Python {other}" for other in versions if other != version),
        )


def start(launch: Launch, arguments: tuple[str, ...]) -> Ending:
    """Run one command of the bundle."""
    command = Command(
        argv=(*launch.command, *arguments),
        seconds=TIME_LIMIT,
        environment={**_QUIET, **launch.environment},
        writable=launch.writable,
    )
    return read_ending(launch.device.run(command))


Started = tuple[tuple[str, ...], dict[str, str], tuple[Path, ...]]
"""A command, the variables that it has besides those of every verification, and the folders that it writes to."""


@contextmanager
def _start_packed(layout: Layout, python: Path) -> Iterator[Started]:
    """The file itself, which looks for its Python on the path."""
    artifact = str(layout.artifact)
    with temporary_folder("site") as name:
        own = Path(name) / "pex"
        own.mkdir()
        environment = {"PEX_ROOT": str(own)}
        if not os.access(artifact, os.X_OK):  # another system's file system, or one that starts no programs
            yield (str(python), artifact), environment, (own,)
            return
        found = Path(name) / "bin"
        found.mkdir()
        (found / "python3").symlink_to(python)
        path = os.pathsep.join((str(found), os.environ.get("PATH", os.defpath)))
        yield (artifact,), {**environment, "PATH": path}, (own,)


@contextmanager
def _start_installed(
    layout: Layout, version: str, python: Path, opening: Opening, *, in_place: bool, added: Lock
) -> Iterator[Started]:
    """The package in an environment of its own wheels; with `in_place` only they are installed."""
    cache_root = opening.cache_root

    def provide() -> AbstractContextManager[Path]:
        return _wheels(layout, version, _host_tags(), cache_root, added)

    locked = prepare_environment(python, merge_locks(layout.lock, added), provide, cache_root, say=opening.say)
    if in_place:
        yield (str(locked), "-m", layout.package), {"PYTHONPATH": str(layout.root)}, ()
        return
    wheels = layout.root / WHEELS if layout.artifact is None else layout.root
    with install_bundle(locked, wheels, layout.artifact or layout.root, cache_root, opening.sandbox) as fresh:
        yield (str(fresh), "-m", layout.package), {}, ()


@contextmanager
def _start_beside(layout: Layout, device: Device, opening: Opening) -> Iterator[Started]:
    """The device's own interpreter, with the wheels and the package put where it finds them."""
    facts, cache_root = device.facts, opening.cache_root
    newest = facts.wheel_platform.rpartition("-")[2]
    tags = expand_tags((f"{newest}_{facts.machine}",))
    site = prepare_site(
        facts.wheel_platform,
        facts.python,
        layout.lock,
        lambda: _wheels(layout, facts.python, tags, cache_root),
        cache_root,
        say=opening.say,
    )
    with temporary_folder("site") as name:
        place = _place_package(layout, Path(name), device)
        found = ":".join((device.put(place, "bundle"), device.put(site, "wheels")))
        yield ("python3", "-m", layout.package), {"PYTHONPATH": found}, ()


@contextmanager
def _wheels(
    layout: Layout, version: str, tags: tuple[str, ...], cache_root: Path, added: Lock = NOTHING
) -> Iterator[Path]:
    """The wheels to install from: the bundle's own where it carries them in the open, and those that are `added`."""
    own = layout.format == "dir"
    if own and not added.pins:
        yield layout.root / WHEELS
        return
    with gather_locked(added if own else merge_locks(layout.lock, added), version, tags, cache_root) as folder:
        for wheel in (layout.root / WHEELS).glob("*.whl") if own else ():
            shutil.copyfile(wheel, folder / wheel.name)
        yield folder


def _place_package(layout: Layout, scratch: Path, device: Device) -> Path:
    """The folder that the package is imported from: the bundle, or what its packed file holds."""
    if layout.artifact is None:
        return layout.root
    wheel = layout.artifact if layout.format == "wheel" else _unpack_wheel(layout.artifact, layout.package, scratch)
    site = scratch / "site"
    target = ("--python-platform", device.facts.wheel_platform, "--python-version", device.facts.python)
    install(wheel.parent, *target, "--no-deps", "--target", str(site), str(wheel))
    return site


def _unpack_wheel(artifact: Path, package: str, scratch: Path) -> Path:
    """The model's own wheel out of the single file: what that file would start."""
    with zipfile.ZipFile(artifact) as archive:
        name = next(name for name in archive.namelist() if name.startswith(f".deps/{package}-"))
        return Path(archive.extract(name, scratch))


def _host_tags() -> tuple[str, ...]:
    from packaging.tags import platform_tags  # noqa: PLC0415 (only where wheels must be fetched for this machine)

    return tuple(platform_tags())
