"""Format `dir`: a package, and a `wheels/` folder from which it installs with no index."""

from __future__ import annotations

from pathlib import Path

from bundler.emitters.contract import EmitRequest
from bundler.emitters.python.layout import LOCK, WHEELS
from bundler.emitters.python.licences import describe_wheel
from bundler.emitters.python.payload import PAYLOAD
from bundler.emitters.python.project import fetch_runtime, write_python_project
from bundler.emitters.writing import copy_file, write_text
from bundler.model.proof import Emitted


def write_dir(request: EmitRequest, folder: Path) -> Emitted:
    """Write the bundle. Raises `BundlerError`."""
    context = write_python_project(request, folder)
    wheels = fetch_runtime(request, context)
    for wheel in wheels.files:
        copy_file(wheel, folder / WHEELS / wheel.name)
    write_text(folder / LOCK, wheels.lock)
    return Emitted(
        payload=f"{context.package}/{PAYLOAD}",
        package=context.package,
        components=tuple(describe_wheel(wheel, WHEELS) for wheel in wheels.files),
    )
