"""How a bundle is started in an environment of its own wheels, and what to say where it cannot be."""

from __future__ import annotations

import platform
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from bundler.emitters.python.emulating import Foreign, find_foreign
from bundler.emitters.python.interpreters import find_python, install, prepare_environment, prepare_site
from bundler.emitters.python.layout import WHEELS, Layout, read_layout
from bundler.emitters.python.proving import Launch, is_native, run_self_test, start
from bundler.emitters.python.wheelhouse import check_locked, gather_locked
from bundler.model.errors import VerificationError
from bundler.model.events import Listener, Message
from bundler.model.proof import VariantProof
from bundler.model.stage import Note


def prove_bundle(bundle: Path, cache_root: Path, listener: Listener) -> tuple[VariantProof, ...]:
    """Run the golden set where the bundle can run here, be it under emulation; else check its files and say why not.

    Raises `VerificationError` when the folder is no bundle, or its wheels are not those of its lock.
    """
    layout = read_layout(bundle.resolve())
    if layout.format == "dir":
        check_locked(layout.root / WHEELS, layout.lock)

    def say(text: str) -> None:
        listener(Message(build=bundle.name, note=Note(text=text)))

    if is_native(layout):
        found = find_python(layout.python_versions, cache_root)
        if found is None:
            return _leave(layout, f"no Python {', '.join(layout.python_versions)} is installed here")
        say(f"proving in a fresh environment of Python {found[0]}")
        with _launch_here(layout, *found, cache_root) as launch:
            return run_self_test(layout, launch)
    foreign = find_foreign(layout, cache_root, say)
    if isinstance(foreign, str):
        return _leave(layout, f"{_explain_foreign(layout)}; {foreign}")
    say(f"proving under emulation of {foreign.core}, with Python {foreign.version}")
    with _launch_there(layout, foreign, cache_root) as launch:
        return run_self_test(layout, launch)


def measure_bundle(bundle: Path, plain: Path, cache_root: Path, runs: int) -> dict[str, dict[str, float]] | None:
    """Time the bundle and a plain session on the model `plain` in turns, in the bundle's own runtime: seconds by name,
    under `bundle` and `plain`. None where the bundle cannot run here at full speed. Raises `VerificationError`.
    """
    layout = read_layout(bundle.resolve())
    found = find_python(layout.python_versions, cache_root) if is_native(layout) else None
    if found is None:
        return None
    with _launch_here(layout, *found, cache_root) as launch:
        ending = start(launch, ("bench", "--json", "--runs", str(runs), "--compare", str(plain.resolve())))
    if ending.failure is not None:
        raise VerificationError(
            f"{bundle.name} could not be timed", details=(ending.failure,), hint="see `bundler verify`"
        )
    return {name: dict(ending.answer[name]) for name in ("bundle", "plain")}


def _leave(layout: Layout, reason: str) -> tuple[VariantProof, ...]:
    return tuple(
        VariantProof(variant=variant.name, level="resolved", passed=None, comparison=None, reason=reason, figures={})
        for variant in layout.config.variants
    )


def _explain_foreign(layout: Layout) -> str:
    requires = layout.config.variants[0].requires
    there = f"{' or '.join(requires.systems)} on {' or '.join(requires.machines)}"
    return f"it is for {there}, this machine is {platform.system()} on {platform.machine()}"


@contextmanager
def _launch_here(layout: Layout, version: str, python: Path, cache_root: Path) -> Iterator[Launch]:
    """The command of the bundle on this machine, for as long as it is needed."""
    remark = f"reproduced with onnxruntime {_runtime(layout)}, with no index"
    with tempfile.TemporaryDirectory(prefix="bundler-site-", ignore_cleanup_errors=True) as name:
        if layout.format == "pex":
            command: tuple[str, ...] = (str(python), str(layout.artifact))
            environment = {"PEX_ROOT": str(Path(name) / "pex")}
        else:
            fresh = prepare_environment(
                python, layout.lock, lambda: _wheels(layout, version, _host_tags(), cache_root), cache_root
            )
            command = (str(fresh), "-m", layout.package)
            environment = {"PYTHONPATH": str(_place_package(layout, Path(name), fresh))}
        yield Launch(command=command, environment=environment, level="executed", remark=remark)


@contextmanager
def _launch_there(layout: Layout, foreign: Foreign, cache_root: Path) -> Iterator[Launch]:
    """The same under emulation: the interpreter is the image's own, so the wheels are put beside it."""
    remark = f"reproduced with onnxruntime {_runtime(layout)} under emulation of {foreign.core}, with no index"
    site = prepare_site(
        foreign.python.uv_platform,
        foreign.version,
        layout.lock,
        lambda: _wheels(layout, foreign.version, foreign.tags, cache_root),
        cache_root,
    )
    with tempfile.TemporaryDirectory(prefix="bundler-site-", ignore_cleanup_errors=True) as name:
        place = _place_package(layout, Path(name), None)
        yield Launch(
            command=(*foreign.python.argv, "-m", layout.package),
            environment={**foreign.python.environment, "PYTHONPATH": f"{place}:{site}"},
            level="emulated",
            remark=remark,
        )


def _runtime(layout: Layout) -> str:
    return layout.config.variants[0].requires.runtime


def _wheels(layout: Layout, version: str, tags: tuple[str, ...], cache_root: Path) -> AbstractContextManager[Path]:
    """The wheels to install from: the bundle's own where it carries them in the open."""
    if layout.format == "dir":
        return nullcontext(layout.root / WHEELS)
    return gather_locked(layout.lock, version, tags, cache_root)


def _place_package(layout: Layout, scratch: Path, python: Path | None) -> Path:
    """The folder that the package is imported from: the bundle, or what its packed file holds."""
    if layout.artifact is None:
        return layout.root
    wheel = layout.artifact if layout.format == "wheel" else _unpack_wheel(layout.artifact, layout.package, scratch)
    site = scratch / "site"
    which = () if python is None else ("--python", str(python))
    install(wheel.parent, *which, "--no-deps", "--target", str(site), str(wheel))
    return site


def _unpack_wheel(artifact: Path, package: str, scratch: Path) -> Path:
    """The model's own wheel out of the single file: what that file would start."""
    with zipfile.ZipFile(artifact) as archive:
        name = next(name for name in archive.namelist() if name.startswith(f".deps/{package}-"))
        return Path(archive.extract(name, scratch))


def _host_tags() -> tuple[str, ...]:
    from packaging.tags import platform_tags  # noqa: PLC0415 (only where wheels must be fetched for this machine)

    return tuple(platform_tags())
