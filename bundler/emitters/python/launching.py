"""How a bundle is started in an environment of its own wheels, and what to say where it cannot be."""

from __future__ import annotations

import platform
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bundler.emitters.python.interpreters import find_python, install_command, prepare_environment
from bundler.emitters.python.layout import WHEELS, Layout, read_layout
from bundler.emitters.python.proving import Launch, is_native, run_self_test
from bundler.emitters.python.wheelhouse import check_locked, fetch_locked
from bundler.model.errors import VerificationError
from bundler.model.events import Listener, Message
from bundler.model.proof import VariantProof
from bundler.model.stage import Note

_INSTALL_LIMIT = 300.0


def prove_bundle(bundle: Path, cache_root: Path, listener: Listener) -> tuple[VariantProof, ...]:
    """Run the golden set where the bundle can run here; else check its files and say that nothing was run.

    Raises `VerificationError` when the folder is no bundle, or its wheels are not those of its lock.
    """
    layout = read_layout(bundle.resolve())
    if layout.format == "dir":
        check_locked(layout.root / WHEELS, layout.lock)
    if not is_native(layout):
        return _leave(layout, _explain_foreign(layout))
    found = find_python(layout.python_versions, cache_root)
    if found is None:
        return _leave(layout, f"no Python {', '.join(layout.python_versions)} is installed here")
    version, python = found
    listener(Message(build=bundle.name, note=Note(text=f"proving in a fresh environment of Python {version}")))
    with _launch(layout, version, python, cache_root) as launch:
        return run_self_test(layout, launch)


def _leave(layout: Layout, reason: str) -> tuple[VariantProof, ...]:
    return tuple(
        VariantProof(variant=variant.name, level="resolved", passed=None, comparison=None, reason=reason, figures={})
        for variant in layout.config.variants
    )


def _explain_foreign(layout: Layout) -> str:
    requires = layout.config.variants[0].requires
    there = f"{' or '.join(requires.systems)} on {' or '.join(requires.machines)}"
    here = f"{platform.system()} on {platform.machine()}"
    return f"it is for {there}, this machine is {here}; its files are those of its lock"


@contextmanager
def _launch(layout: Layout, version: str, python: Path, cache_root: Path) -> Iterator[Launch]:
    """The command of the bundle, for as long as it is needed."""
    remark = f"reproduced with onnxruntime {layout.config.variants[0].requires.runtime}, with no index"
    with tempfile.TemporaryDirectory(prefix="bundler-site-", ignore_cleanup_errors=True) as name:
        command, environment = _make_command(layout, version, python, Path(name), cache_root)
        yield Launch(command=command, environment=environment, level="executed", remark=remark)


def _make_command(
    layout: Layout, version: str, python: Path, scratch: Path, cache_root: Path
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command that stands for `python -m <package>`, and its environment variables."""
    if layout.format == "pex":
        return (str(python), str(layout.artifact)), {"PEX_ROOT": str(scratch / "pex")}
    wheels = layout.root / WHEELS if layout.format == "dir" else fetch_locked(layout.lock, version, cache_root)
    fresh = prepare_environment(python, wheels, layout.lock, cache_root)
    site = layout.root if layout.artifact is None else _install(fresh, layout.artifact, scratch)
    return (str(fresh), "-m", layout.package), {"PYTHONPATH": str(site)}


def _install(python: Path, wheel: Path, folder: Path) -> Path:
    """The wheel's package in a folder of its own: the environment is shared, the model is not."""
    command = install_command(python, wheel.parent, "--no-deps", "--target", str(folder), str(wheel))
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_INSTALL_LIMIT, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise VerificationError(
            f"{wheel.name} does not install",
            details=tuple(done.stderr.strip().splitlines()[-12:]),
            hint="build it again",
        )
    return folder
