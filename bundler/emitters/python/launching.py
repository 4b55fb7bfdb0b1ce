"""How a bundle is started in an environment of its own wheels, and what to say where it cannot be."""

from __future__ import annotations

import os
import platform
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from bundler.emitters.contract import ProofRequest
from bundler.emitters.load import LoadWatch
from bundler.emitters.python.emulating import Foreign, find_foreign
from bundler.emitters.python.interpreters import (
    find_python,
    install,
    install_bundle,
    prepare_environment,
    prepare_site,
)
from bundler.emitters.python.layout import WHEELS, Layout, read_layout
from bundler.emitters.python.proving import NO_ANSWER, Ending, Launch, is_native, run_self_test, start
from bundler.emitters.python.wheelhouse import check_locked, gather_locked
from bundler.environments.sandbox import Sandbox, python_folders
from bundler.execution.passing import passing_folder
from bundler.model.errors import UsageError
from bundler.model.events import Listener, Message
from bundler.model.free_dimensions import shown_name
from bundler.model.measurement import Measurement, Throughput, Timing
from bundler.model.proof import VariantProof
from bundler.model.runtime import RuntimeVariant
from bundler.model.signature import describe_type
from bundler.model.stage import Note

MEASURE_SECONDS = 3.0
"""After this long a variant has been timed enough, whatever the model costs."""

MEASURE_OPENINGS = 30
MEASURE_RUNS = 1000
"""No more than so many openings and calls, however quick the model."""


def prove_bundle(request: ProofRequest) -> tuple[VariantProof, ...]:
    """Run the golden set where the bundle can run here, be it under emulation; else check its files and say why not.

    Raises `VerificationError` when the folder is no bundle, or its wheels are not those of its lock.
    """
    layout, cache_root = read_layout(request.bundle.resolve()), request.cache_root
    if layout.format == "dir":
        check_locked(layout.root, WHEELS, layout.lock)
    say = _speaker(layout, request.listener)
    if is_native(layout):
        found = find_python(layout.python_versions, cache_root)
        if found is None:
            return _leave(layout, f"no Python {', '.join(layout.python_versions)} is installed here")
        say(f"verifying in a fresh environment of Python {found[0]}")
        with _launch_here(layout, *found, request) as launch:
            return run_self_test(layout, launch)
    if request.sandbox is not None:
        return _leave(layout, f"{_explain_foreign(layout)}; nothing is emulated in the sandbox")
    foreign = find_foreign(layout, cache_root, say)
    if isinstance(foreign, str):
        return _leave(layout, f"{_explain_foreign(layout)}; {foreign}")
    say(f"verifying under emulation of {foreign.core}, with Python {foreign.version}")
    with _launch_there(layout, foreign, cache_root) as launch:
        return run_self_test(layout, launch)


def measure_bundle(request: ProofRequest) -> tuple[Measurement, ...]:
    """Time each variant and a plain session on the untouched model in turns, in the bundle's own runtime.

    Without a model there is nothing beside it. A variant that cannot be timed is left out, and the listener is told
    why; empty where none runs at full speed. Raises `UsageError` for a batch that the bundle does not take.
    """
    layout = read_layout(request.bundle.resolve())
    _check_batch(layout, request.timing.batch)
    found = find_python(layout.python_versions, request.cache_root) if is_native(layout) else None
    if found is None:
        return ()
    say = _speaker(layout, request.listener)
    shown = _given(request.model)
    with _launch_here(layout, *found, request, shown, in_place=True) as launch:
        timed = [_measure_variant(variant, launch, request, say) for variant in layout.config.variants]
    return tuple(measurement for measurement in timed if measurement is not None)


def _check_batch(layout: Layout, batch: int) -> None:
    """Raise `UsageError` where an input has another first size, and no other: it is one for every variant."""
    for port in layout.config.signature.inputs if batch else ():
        first = port.type.shape[0] if port.type.shape else None
        if isinstance(first, int) and first != batch:
            raise UsageError(
                f"{layout.root} takes a batch of {first} and no other: --batch {batch} cannot be timed",
                details=(f"input {shown_name(port.name)}: {describe_type(port.type)}",),
                hint=f"leave --batch out, or build a bundle whose first size is free or {batch}",
            )


def _measure_variant(
    variant: RuntimeVariant, launch: Launch, request: ProofRequest, say: Callable[[str], None]
) -> Measurement | None:
    beside = () if request.model is None else ("--compare", str(request.model.resolve()))
    made = ("--prewarm",) if variant.prepare else ()
    watch = LoadWatch()
    bounds = (*_bound(request.timing), *_vary(request.timing))
    ending = start(launch, ("bench", "--json", "--variant", variant.name, *made, *bounds, *beside))
    if ending.failure is not None:
        say(f"variant {variant.name} could not be timed: {ending.failure}")
        return None
    try:
        return _read_times(variant, request, watch, ending)
    except NO_ANSWER as error:
        say(f"variant {variant.name} could not be timed: what it said is no answer of a loader ({error})"[:300])
        return None


def _read_times(variant: RuntimeVariant, request: ProofRequest, watch: LoadWatch, ending: Ending) -> Measurement:
    bundle = ending.answer["series"]["bundle"]
    baseline = ending.answer["series"].get("plain", {"first_answer_seconds": (), "latency_seconds": ()})
    return Measurement(
        name="golden sample 0",
        variant=variant.name,
        opening_ms=_milliseconds(bundle["first_answer_seconds"]),
        latency_ms=_milliseconds(bundle["latency_seconds"]),
        baseline_opening_ms=_milliseconds(baseline["first_answer_seconds"]),
        baseline_latency_ms=_milliseconds(baseline["latency_seconds"]),
        others=watch.others(),
        throughput=tuple(
            Throughput(callers=found["callers"], per_second=tuple(found["calls_per_second"]))
            for found in ending.answer.get("throughput", ())
        ),
        batch=request.timing.batch,
    )


def _bound(timing: Timing) -> tuple[str, ...]:
    seconds = timing.seconds or MEASURE_SECONDS
    runs = max(MEASURE_RUNS, round(MEASURE_RUNS * seconds / MEASURE_SECONDS))
    return ("--seconds", f"{seconds:g}", "--openings", str(MEASURE_OPENINGS), "--runs", str(runs))


def _vary(timing: Timing) -> tuple[str, ...]:
    """What differs from the usual; a bundle of an older loader does not know these options."""
    named = {"--batch": timing.batch, "--threads": timing.threads, "--callers": ",".join(map(str, timing.callers))}
    return tuple(text for name, value in named.items() if value for text in (name, str(value)))


def _milliseconds(seconds: Sequence[float]) -> tuple[float, ...]:
    return tuple(value * 1000 for value in seconds)


def _speaker(layout: Layout, listener: Listener) -> Callable[[str], None]:
    """Tells the listener, under the name that the build has in all other messages."""
    build = f"{layout.config.model} → {layout.config.target}"
    return lambda text: listener(Message(build=build, note=Note(text=text)))


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
def _launch_here(
    layout: Layout,
    version: str,
    python: Path,
    request: ProofRequest,
    shown: tuple[Path, ...] = (),
    *,
    in_place: bool = False,
) -> Iterator[Launch]:
    """The command of the bundle on this machine, for as long as it is needed: installed as its README says, or, with
    `in_place`, run where it lies, if it is a folder. In a sandbox it also sees what is `shown`.
    """
    inside, cache_root = None, request.cache_root
    if request.sandbox is not None:
        inside = request.sandbox.showing((cache_root, layout.root, *python_folders(python), *shown))
    if layout.format == "pex":
        started = _start_packed(layout, python)
    else:
        here = in_place and layout.artifact is None
        started = _start_installed(layout, version, python, cache_root, sandbox=inside, in_place=here)
    with started as (command, environment):
        yield Launch(
            command=command,
            environment=environment,
            level="executed",
            remark=f"ran with onnxruntime {_runtime(layout)} on Python {version}, with no index",
            means=f"Python {version}",
            unrun=_list_unrun(layout, version),
            sandbox=inside,
        )


def _given(path: Path | None) -> tuple[Path, ...]:
    """A model to time beside a bundle, with its data."""
    return () if path is None else (path, path.absolute().parent)


Started = tuple[tuple[str, ...], dict[str, str]]
"""A command, and what its environment has beside that of every proof."""


@contextmanager
def _start_packed(layout: Layout, python: Path) -> Iterator[Started]:
    """The file itself, which looks for its Python on the path."""
    artifact = str(layout.artifact)
    with passing_folder("site") as name:
        environment = {"PEX_ROOT": str(Path(name) / "pex")}
        (Path(name) / "pex").mkdir()
        if not os.access(artifact, os.X_OK):  # another system's file system, or one that starts no programs
            yield (str(python), artifact), environment
            return
        found = Path(name) / "bin"
        found.mkdir()
        (found / "python3").symlink_to(python)
        yield (artifact,), {**environment, "PATH": os.pathsep.join((str(found), os.environ.get("PATH", os.defpath)))}


@contextmanager
def _start_installed(
    layout: Layout, version: str, python: Path, cache_root: Path, *, sandbox: Sandbox | None, in_place: bool
) -> Iterator[Started]:
    """The package in an environment of its own wheels; with `in_place` only they are installed."""

    def provide() -> AbstractContextManager[Path]:
        return _wheels(layout, version, _host_tags(), cache_root)

    locked = prepare_environment(python, layout.lock, provide, cache_root)
    if in_place:
        yield (str(locked), "-m", layout.package), {"PYTHONPATH": str(layout.root)}
        return
    wheels = layout.root / WHEELS if layout.artifact is None else layout.root
    with install_bundle(locked, wheels, layout.artifact or layout.root, cache_root, sandbox) as fresh:
        yield (str(fresh), "-m", layout.package), {}


@contextmanager
def _launch_there(layout: Layout, foreign: Foreign, cache_root: Path) -> Iterator[Launch]:
    """The same under emulation: the interpreter is the image's own, so the wheels are put beside it."""
    means = f"onnxruntime {_runtime(layout)} on Python {foreign.version} under emulation of {foreign.core}"
    remark = f"ran with {means}, with no index"
    site = prepare_site(
        foreign.python.uv_platform,
        foreign.version,
        layout.lock,
        lambda: _wheels(layout, foreign.version, foreign.tags, cache_root),
        cache_root,
    )
    with passing_folder("site") as name:
        place = _place_package(layout, Path(name), foreign)
        yield Launch(
            command=(*foreign.python.argv, "-m", layout.package),
            environment={**foreign.python.environment, "PYTHONPATH": f"{place}:{site}"},
            level="emulated",
            remark=remark,
            place=f"under emulation of {foreign.core}",
            means=f"Python {foreign.version}",
            unrun=_list_unrun(layout, foreign.version),
        )


def _list_unrun(layout: Layout, version: str) -> tuple[str, ...]:
    """The versions of Python that the bundle is for and that are not started."""
    return tuple(f"Python {other}" for other in layout.python_versions if other != version)


def _runtime(layout: Layout) -> str:
    return layout.config.variants[0].requires.runtime


def _wheels(layout: Layout, version: str, tags: tuple[str, ...], cache_root: Path) -> AbstractContextManager[Path]:
    """The wheels to install from: the bundle's own where it carries them in the open."""
    if layout.format == "dir":
        return nullcontext(layout.root / WHEELS)
    return gather_locked(layout.lock, version, tags, cache_root)


def _place_package(layout: Layout, scratch: Path, foreign: Foreign) -> Path:
    """The folder that the package is imported from: the bundle, or what its packed file holds."""
    if layout.artifact is None:
        return layout.root
    wheel = layout.artifact if layout.format == "wheel" else _unpack_wheel(layout.artifact, layout.package, scratch)
    site = scratch / "site"
    target = ("--python-platform", foreign.python.uv_platform, "--python-version", foreign.version)
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
