"""Format `pex`: one executable file with the model, the runtime and the loader in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bundler.emitters.components import describe_loader
from bundler.emitters.contract import EmitRequest
from bundler.emitters.python.context import Context
from bundler.emitters.python.layout import LOCK
from bundler.emitters.python.licences import DEPENDENCIES, describe_packed
from bundler.emitters.python.modules import LOADER
from bundler.emitters.python.profile import PythonSettings
from bundler.emitters.python.tags import expand_tags, target_markers
from bundler.emitters.python.wheel_format import EPOCH, pack_wheel
from bundler.emitters.python.wheelhouse import Wheelhouse, gather_wheels
from bundler.emitters.writing import PROGRAM_MODE, copy_file, write_text
from bundler.environments.packages import find_package
from bundler.environments.variables import proof_environment
from bundler.execution.temporary import temporary_folder
from bundler.model.errors import StageError
from bundler.model.proof import Emitted
from bundler.profiles.schema import TargetProfile
from bundler.support.data import data_root
from bundler.support.platforms import MACHINES
from bundler.support.processes import run_process

PACKAGER = "pex"
"""Its environment, locked by digest in `locks/`."""

_TIME_LIMIT = 1800.0


def write_pex(request: EmitRequest, folder: Path) -> Emitted:
    """Write the bundle. Raises `BundlerError`."""
    context, house = pack_wheel(request, folder)
    wheel = next(folder.glob("*.whl"))
    target = folder / context.artifact
    packager = _pack(request, context, house, wheel, target)
    wheel.unlink()
    write_text(folder / LOCK, house.lock)
    return Emitted(
        notes=(PythonSettings.of(request.profile).describe_pythons(chosen=request.versions_chosen),),
        payload=None,
        package=context.package,
        dependencies=(
            *describe_packed(house.wheels, packager, target),
            describe_loader(f"{target.name}/{DEPENDENCIES}/{wheel.name}/{context.package}/{LOADER}"),
        ),
    )


def _pack(request: EmitRequest, context: Context, house: Wheelhouse, wheel: Path, target: Path) -> Path:
    """Give the packager exactly the locked files; it must find every one of them and may look nowhere else. Returns
    the packager's own folder.
    """
    packager = request.environments.resolve(PACKAGER, (PACKAGER,), request.reporter)
    with temporary_folder("pex") as name, gather_wheels(house.wheels) as wheels:
        platforms = _write_platforms(request.profile, Path(name))
        own = Path(name) / wheel.name  # the packager takes paths for URLs, and no output whose path is not ASCII
        copy_file(wheel, own)
        command = [str(packager.python), "-m", "pex", *_OPTIONS, "--pex-root", f"{name}/root", "--tmpdir", name]
        command += ["--preamble-file", str(data_root("templates") / "python" / "pex_preamble.py")]
        command += ["--find-links", str(wheels), str(own), "-m", context.package, "-o", str(target)]
        command += [part for path in platforms for part in ("--complete-platform", str(path))]
        _run(command, name)
    target.chmod(PROGRAM_MODE)
    return find_package(packager, PACKAGER)


_OPTIONS = (
    *("--no-pypi", "--no-index", "--disable-cache", "--resolver-version", "pip-2020-resolver"),
    *(
        "--no-compress",
        "--no-pre-install-wheels",
        "--no-compile",
        "--no-use-system-time",
        "--python-shebang",
        "/usr/bin/env python3",
    ),
)


def _run(command: list[str], home: str) -> None:
    # The packager writes down where this user's caches are (XDG_CACHE_HOME), and obeys PEX_* and PIP_* variables.
    environment = {
        **proof_environment(),
        "SOURCE_DATE_EPOCH": EPOCH,
        "HOME": home,
        "USERPROFILE": home,
        "PYTHONHASHSEED": "0",
    }
    done = run_process(command, seconds=_TIME_LIMIT, text=True, env=environment)
    if done.returncode:
        raise StageError(
            "the executable file could not be packed", details=tuple(done.stderr.strip().splitlines()[-12:])
        )


def _write_platforms(profile: TargetProfile, folder: Path) -> list[Path]:
    """One description a Python version: what the target would say of itself, so that no machine need be asked."""
    paths = []
    for version in PythonSettings.of(profile).versions:
        path = folder / f"platform-{version}.json"
        path.write_text(json.dumps(describe_platform(profile, version)), "utf-8")
        paths.append(path)
    return paths


def describe_platform(profile: TargetProfile, version: str) -> dict[str, Any]:
    """The environment markers and compatible tags of CPython `version` on the target."""
    markers = target_markers(PythonSettings.of(profile).wheel_platforms, version)
    del markers["extra"]  # of a package, not of a platform
    machine = MACHINES[profile.platform.system, profile.platform.architecture]
    return {
        "marker_environment": {**markers, "platform_machine": machine},
        "compatible_tags": _list_tags(PythonSettings.of(profile).wheel_platforms, int(version.split(".")[1])),
    }


def _list_tags(given: tuple[str, ...], minor: int) -> list[str]:
    """From the most to the least specific, as PEP 425 orders them."""
    platforms = expand_tags(given)
    native = [f"cp3{minor}-{abi}-{tag}" for abi in (f"cp3{minor}", "abi3", "none") for tag in platforms]
    stable = [f"cp3{older}-abi3-{tag}" for older in range(minor - 1, 1, -1) for tag in platforms]
    pythons = [f"py3{minor}", "py3", *(f"py3{older}" for older in range(minor - 1, -1, -1))]
    plain = [f"{python}-none-{tag}" for python in pythons for tag in platforms]
    return [*native, *stable, *plain, f"cp3{minor}-none-any", *(f"{python}-none-any" for python in pythons)]
