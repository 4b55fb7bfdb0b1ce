"""Format `dir`: a package, and a `wheels/` folder from which it installs with no index."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bundler.emitters.components import describe_loader
from bundler.emitters.contract import EmitRequest
from bundler.emitters.payload import PAYLOAD
from bundler.emitters.python.layout import LOCK, WHEELS
from bundler.emitters.python.licences import describe_wheel
from bundler.emitters.python.modules import LOADER
from bundler.emitters.python.profile import PythonSettings
from bundler.emitters.python.project import write_python_project
from bundler.emitters.python.sharing import place_wheel
from bundler.emitters.python.wheelhouse import fetch_runtime
from bundler.emitters.writing import write_text
from bundler.model.proof import Emitted


def write_dir(request: EmitRequest, folder: Path) -> Emitted:
    """Write the bundle. Raises `BundlerError`."""
    context = write_python_project(request, folder)
    house = fetch_runtime(request)
    # Copying and hashing release the interpreter's lock, so two threads take half the time.
    with ThreadPoolExecutor(max_workers=2) as pool:
        for _ in pool.map(lambda wheel: place_wheel(wheel, folder / WHEELS, request.reporter.warn), house.wheels):
            pass
    write_text(folder / LOCK, house.lock)
    return Emitted(
        notes=(PythonSettings.of(request.profile).describe_pythons(chosen=request.versions_chosen),),
        payload=f"{context.package}/{PAYLOAD}",
        package=context.package,
        dependencies=(
            *(describe_wheel(wheel, WHEELS) for wheel in house.wheels),
            describe_loader(f"{context.package}/{LOADER}"),
        ),
    )
